import { describe, expect, it } from "vitest";

import type { Now, StageRow } from "../live/types";
import { places } from "./Curve";
import { told } from "./Tested";

const row = (stage: string, values: (number | string | null)[], name = "all") => ({ stage, name, values }) as unknown as StageRow;
const now = (rows: StageRow[]) =>
  ({ columns: ["load", "output_tok_per_s", "ttft_ms_p99", "ttft_scheduled_ms_p99"], rows }) as unknown as Now;

describe("places", () => {
  it("takes a point a stage, and leaves out what is absent", () => {
    const rows = [
      row("8", ["closed loop", 600, 1200, null]),
      row("8", ["closed loop", 600, 1200, null], "chat"),
      row("16", ["closed loop", 900, null, null]),
    ];
    expect(places(now(rows), "ttft_ms_p99")).toEqual([[600, 1200, "8"]]);
  });

  it("counts from the schedule where there is one", () => {
    expect(places(now([row("2 req/s", ["open loop", 600, 1200, 1900])]), "ttft_ms_p99")).toEqual([[600, 1900, "2 req/s"]]);
  });
});

describe("told", () => {
  it("says settings as one reads them", () => {
    expect([told("a"), told([8, 16]), told({ low: 1, high: 2 }), told(true), told([["k", "v"]]), told({ a: { b: 1 } })]).toEqual([
      "a",
      "8, 16",
      "low 1, high 2",
      "true",
      '[["k","v"]]',
      '{"a":{"b":1}}',
    ]);
  });
});
