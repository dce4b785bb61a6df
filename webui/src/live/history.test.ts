import { describe, expect, test } from "vitest";

import { join, joinPoints, NOTHING, series } from "./history";
import type { Answer, History, Now } from "./types";

const history = (points: (number | null)[][]): History => ({
  columns: ["from_s", "until_s", "users"],
  heat: { lowest_ms: 0.001, ratio: 1.2 },
  points,
  bands: [],
});
const now = { state: "running" } as Now;
const answer = (token: string, whole: boolean, points: (number | null)[][]): Answer => ({
  token,
  whole,
  now,
  history: history(points),
});

describe("what changed joins what the page has", () => {
  test("a longer point replaces those within it, and the order is kept", () => {
    const known = [[0, 1, 1], [1, 2, 2], [2, 3, 3], [3, 4, 4]];
    expect(joinPoints(known, [[4, 5, 5], [1, 3, 9]])).toEqual([[0, 1, 1], [1, 3, 9], [3, 4, 4], [4, 5, 5]]);
  });

  test("neighbours that only touch stay", () => {
    expect(joinPoints([[0, 1, 1], [2, 3, 3]], [[1, 2, 2]])).toEqual([[0, 1, 1], [1, 2, 2], [2, 3, 3]]);
  });

  test("a whole answer drops what was known: another run, or a reset", () => {
    const first = join(NOTHING, answer("1.1.2", true, [[0, 1, 1], [1, 2, 1]]));
    const other = join(first, answer("2.1.1", true, [[50, 51, 7]]));
    expect(other.history?.points).toEqual([[50, 51, 7]]);
  });

  test("an answer without news keeps the picture", () => {
    const first = join(NOTHING, answer("1.1.2", true, [[0, 1, 1]]));
    expect(join(first, { token: "1.1.2", whole: false, now: null })).toEqual(first);
  });

  test("no run leaves nothing", () => {
    const first = join(NOTHING, answer("1.1.2", true, [[0, 1, 1]]));
    expect(join(first, { token: "", whole: true, now: null })).toEqual(NOTHING);
  });

  test("a column is drawn at the middle of each point, and absent is no 0", () => {
    expect(series(history([[10, 12, 5], [12, 13, null]]), "users")).toEqual([[11_000, 5], [12_500, null]]);
  });
});
