import { expect, test } from "vitest";

import type { History } from "../live/types";
import { extents } from "./bands";
import { axisEnd, logTicks } from "./base";
import { cdf, E2E, TTFT } from "./Distributions";
import { heatCells, heatColour, heightLabel } from "./HeatMap";

const history: History = {
  columns: ["from_s", "until_s", "ttft_ms_heat"],
  heat: { lowest_ms: 1, ratio: 10 },
  points: [[0, 600, [1, 3, 0, 1]], [600, 1200, null]],
  bands: [],
};

test("a heat cell spans its bin and has its share of its time", () => {
  expect(heatCells(history, "ttft_ms_heat")).toEqual([
    [0, 600_000, 10, 100, 3, 0.75],
    [0, 600_000, 1000, 10_000, 1, 0.25],
  ]);
});

test("neighbouring seconds are joined so that no time has but one sample", () => {
  const points = Array.from({ length: 1200 }, (_, at) => [at, at + 1, [0, 1]]);
  const cells = heatCells({ ...history, points }, "ttft_ms_heat");
  expect(cells).toHaveLength(120);
  expect(cells.every(([, , , , n]) => n === 10)).toBe(true);
});

test("each step of colour stands for half the share", () => {
  const colours = ["a", "b", "c"];
  expect([1, 0.6, 0.5, 0.3, 0.2, 0.001].map((share) => heatColour(share, colours))).toEqual(["c", "c", "b", "b", "a", "a"]);
});

test("the CDF rises to 100 % over those that have the value", () => {
  const requests: [number, number | null, null, null, null][] = [[30, 3, null, null, null], [10, null, null, null, null], [20, 1, null, null, null]];
  expect(cdf(requests, E2E)).toEqual([[10, 100 / 3], [20, 200 / 3], [30, 100]]);
  expect(cdf(requests, TTFT)).toEqual([[1, 50], [3, 100]]);
});

test("the phases of a stage are one extent", () => {
  expect(extents([["a", "ramp", 0, 5], ["a", "steady", 5, 9], [null, null, 9, 10], ["b", "steady", 10, 12]])).toEqual([
    { stage: "a", fromMs: 0, untilMs: 9000 },
    { stage: "b", fromMs: 10_000, untilMs: 12_000 },
  ]);
});

test("gaps of nothing share the lowest row", () => {
  const fine = { ...history, heat: { lowest_ms: 0.001, ratio: 10 }, points: [[0, 600, [0, 4, 1, 2]]] };
  expect(heatCells(fine, "ttft_ms_heat").map(([, , low, high, n]) => [low, Number(high.toFixed(3)), n])).toEqual([[0.1, 1, 7]]);
});

test("the lowest row's label says that less is in it, and nothing stands below", () => {
  expect([0.05, 0.1, 1, 10_000].map(heightLabel)).toEqual(["", "≤ 0.1", "1", "10,000"]);
});

test.each([
  [23.2, 30],
  [6.9, 8],
  [8.8, 12],
  [0.0031, 0.004],
  [10_900, 15_000],
  [0, null],
  [-Infinity, null],
])("an axis of values up to %f ends at %f", (greatest, end) => {
  expect(axisEnd(greatest)).toBe(end);
});

test.each([
  [268, 13_600, [500, 1000, 2000, 5000, 10_000]],
  [23.5, 118, [30, 40, 50, 70, 100]],
  [20, 22.1, [20, 21, 22]],
  [9.98, 10.07, [10, 10.05]],
  [0.4, 900, [1, 3, 10, 30, 100, 300]],
  [1, 1e6, [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]],
  [7, 7, [7]],
  [Infinity, -Infinity, []],
])("a log axis from %f to %f has labels", (least, greatest, ticks) => {
  expect(logTicks(least, greatest)).toEqual(ticks);
});
