// @vitest-environment node
import * as echarts from "echarts";
import { expect, test } from "vitest";

import type { History } from "../live/types";
import { loadChart } from "./Charts";
import { timeOption } from "./TimeChart";

const WIDTH = 600;
/** Where the drawing begins, below title and legend. */
const TOP_PX = 74;
/** Half of a time in 12 px. */
const HALF_PX = 26;

function history(fromS: number, seconds: number, users = 8, inFlight = 4): History {
  const points = Array.from({ length: seconds }, (_, at) => [fromS + at, fromS + at + 1, 5, users, inFlight]);
  return { columns: ["from_s", "until_s", "ttft_ms_p50", "users", "in_flight_peak"], heat: { lowest_ms: 1, ratio: 10 }, points, bands: [] };
}

function chartOf(drawn: History): echarts.ECharts {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height: 300 });
  chart.setOption(timeOption({ title: "", unit: "ms", lines: [{ name: "a", column: "ttft_ms_p50", colour: "blue" }], history: drawn, dark: false }));
  return chart;
}

/** Where the times below a chart stand, and how far they reach to both sides. */
function times(drawn: History): [number, number][] {
  const chart = chartOf(drawn);
  const texts = [...chart.renderToSVGString().matchAll(/<text([^>]*)>\s*[\d:]{8}\s*<\/text>/g)].map(([, about]) => about ?? "");
  chart.dispose();
  return texts.map((about) => {
    const x = Number(/translate\(([\d.]+)/.exec(about)?.[1]);
    const sides = { start: [0, 2], middle: [1, 1], end: [2, 0] }[/text-anchor="(\w+)"/.exec(about)?.[1] ?? "start"] ?? [];
    return [x - (sides[0] ?? 0) * HALF_PX, x + (sides[1] ?? 0) * HALF_PX];
  });
}

test.each([38, 39, 40, 41, 42])("no time is cut off by the edge of a chart of %d seconds", (seconds) => {
  const found = times(history(1_796_090_216, seconds));
  expect(found.length).toBeGreaterThan(3);
  expect(found.filter(([left, right]) => left < 0 || right > WIDTH)).toEqual([]);
});

test("a line that hardly changes leaves room for the names of stages above it", () => {
  const flat = history(0, 9);
  flat.points.forEach((point, at) => { point[2] = 23 + at / 20; });
  const chart = chartOf(flat);
  const names = TOP_PX + 18;
  expect(chart.convertToPixel({ yAxisIndex: 0 }, 23.4)).toBeGreaterThan(names);
  chart.dispose();
});

test("users that are but a limit far above do not press the requests in flight flat", () => {
  const columns = (drawn: ReturnType<typeof loadChart>) => drawn.lines.map(({ column }) => column);
  const far = loadChart(history(0, 3, 1512, 4), true);
  expect(far.title).toBe("Requests in flight, of at most 1,512");
  expect(columns(far)).toEqual(["in_flight", "in_flight_peak"]);
  for (const near of [loadChart(history(0, 3, 32, 30), true), loadChart(history(0, 3, 512, 4), false)]) {
    expect([near.title, ...columns(near)]).toEqual(["Requests in flight and users", "in_flight", "in_flight_peak", "users"]);
  }
});
