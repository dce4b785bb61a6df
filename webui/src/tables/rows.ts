/** Reads a stage row by the names of the metric table. */

import type { Now, StageRow, Value } from "../live/types";

export type Read = (row: StageRow, column: string) => Value;

export function reader(columns: string[]): Read {
  const places = new Map(columns.map((column, place) => [column, place]));
  return (row, column) => row.values[places.get(column) ?? -1] ?? null;
}

/** The row of the stage that runs, or of the last one that was measured. */
export function currentRow(now: Now): StageRow | null {
  const whole = now.rows.filter((row) => row.name === "all");
  const running = now.progress?.stage ?? null;
  if (now.state === "running" && running !== null) return whole.find((row) => row.stage === running) ?? null;
  return whole.at(-1) ?? null;
}

/** Latencies count from the schedule where there is one: `ttft_ms_p99` becomes `ttft_scheduled_ms_p99`. */
export function scheduled(column: string): string {
  return column.replace(/^(ttft|e2e)_ms_/, "$1_scheduled_ms_");
}

/** Marks a p99 of few samples, and a lower bound. */
export function marked(text: string, read: Read, row: StageRow, column: string, few: number): string {
  if (text === "–") return text;
  const latency = column.replace(/_(mean|p50|p90|p99)$/, "");
  const samples = read(row, `${latency}_count`);
  const bound = column.includes("_scheduled_") && read(row, "scheduled_lower_bounds") === 1 ? "≥" : "";
  return `${bound}${text}${column.endsWith("_p99") && typeof samples === "number" && samples < few ? "*" : ""}`;
}
