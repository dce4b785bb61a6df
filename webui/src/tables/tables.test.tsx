import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";

import type { Now, StageRow } from "../live/types";
import { StageTable } from "./StageTable";

const COLUMNS = ["load", "users", "ttft_ms_count", "ttft_ms_p99", "ttft_scheduled_ms_count", "ttft_scheduled_ms_p99", "scheduled_lower_bounds"];

function row(stage: string, values: StageRow["values"], more: Partial<StageRow> = {}): StageRow {
  const nothing = { outcomes: {}, verdict: null, slo: [], meets_slo: null, best: false, tok_per_s_per_gpu: null, cost_per_million_tokens: null };
  return { stage, name: "all", phase: "steady", values, ...nothing, ...more };
}

const now = (rows: StageRow[]) => ({ columns: COLUMNS, formulas: {}, rows, excluded: [], skipped: {} }) as unknown as Now;

test("an open loop has a line from the schedule, with ≥ where arrivals were dropped", () => {
  render(<StageTable now={now([row("5 req/s", ["open loop", 512, 50, 300, 50, 900, 1])])} />);
  expect(screen.getByText("300*")).toBeTruthy();
  expect(screen.getByText("≥900*")).toBeTruthy();
  expect(screen.queryByText(/Closed loop/)).toBeNull();
  expect(screen.getByText(/the true value is higher/)).toBeTruthy();
});

test("a stage that misses the SLO is dimmed and the best is marked", () => {
  const clause = { clause: "ttft p99 < 2s", metric: "ttft_ms_p99", unit: "ms", wanted: "< 2s", got: 300, n: 500, passed: true };
  const rows = [
    row("8", ["closed loop", 8, 500, 300, null, null, null], { slo: [clause], meets_slo: true, best: true }),
    row("16", ["closed loop", 16, 500, 2500, null, null, null], { slo: [{ ...clause, got: 2500, passed: false }], meets_slo: false }),
  ];
  const { container } = render(<StageTable now={now(rows)} />);
  expect(container.querySelector("[data-marked]")?.textContent).toContain("best");
  expect(container.querySelector("[data-dimmed]")?.textContent).toContain("✕\u00a0ttft\u00a0p99");
});

test("a name with HTML in it is shown as it is", () => {
  const name = "<img src=x onerror=alert(1)>";
  const { container } = render(<StageTable now={now([row(name, ["closed loop", 8, 500, 300, null, null, null])])} />);
  expect(screen.getByText(name)).toBeTruthy();
  expect(container.querySelector("img")).toBeNull();
});
