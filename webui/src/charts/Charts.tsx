/** Every chart of a run over time, in the order in which one asks: latency, throughput, requests, load, the generator. */

import { hasValues, series } from "../live/history";
import type { History } from "../live/types";
import { Framed, Row } from "./Frame";
import { HeatMap } from "./HeatMap";
import { TimeChart, type Line } from "./TimeChart";

const READING_SPEED = { value: 50, label: "reading speed, 50 ms" };

const percentiles = (metric: string, name: string): Line[] => [
  { name: `${name} p50`, column: `${metric}_p50`, colour: "blue" },
  { name: `${name} p90`, column: `${metric}_p90`, colour: "green", dash: "dashed" },
  { name: `${name} p99`, column: `${metric}_p99`, colour: "red" },
];
const TTFT = percentiles("ttft_ms", "TTFT");
const TTFT_SCHEDULED = percentiles("ttft_scheduled_ms", "From schedule");
const PER_TOKEN: Line[] = [
  { name: "TPOT p50", column: "tpot_ms_p50", colour: "blue" },
  { name: "TPOT p99", column: "tpot_ms_p99", colour: "red" },
  { name: "ITL p50", column: "itl_ms_p50", colour: "green", dash: "dashed" },
  { name: "ITL p99", column: "itl_ms_p99", colour: "purple", dash: "dotted" },
];
const TOKENS: Line[] = [
  { name: "Output", column: "output_tok_per_s", colour: "blue", area: true },
  { name: "Output, least second", column: "output_tok_per_s_min", colour: "grey", dash: "dotted" },
  { name: "Output, greatest second", column: "output_tok_per_s_max", colour: "purple", dash: "dotted" },
  { name: "Input", column: "input_tok_per_s", colour: "orange", dash: "dashed" },
];
const REQUESTS: Line[] = [
  { name: "OK", column: "ok_per_s", colour: "blue", area: true },
  { name: "Failed", column: "failed_per_s", colour: "red" },
  { name: "Unfinished", column: "unfinished_per_s", colour: "grey", dash: "dotted" },
  { name: "Started", column: "started_per_s", colour: "green", dash: "dashed" },
];
const LOAD: Line[] = [
  { name: "In flight, mean", column: "in_flight", colour: "blue", area: true },
  { name: "In flight, peak", column: "in_flight_peak", colour: "purple", dash: "dotted" },
  { name: "Users", column: "users", colour: "orange", dash: "dashed", step: true },
];
const WAITS: Line[] = [
  { name: "User wait p50", column: "user_wait_ms_p50", colour: "blue" },
  { name: "User wait p99", column: "user_wait_ms_p99", colour: "red" },
  { name: "Dispatch lag p99", column: "dispatch_lag_ms_p99", colour: "green", dash: "dashed" },
  { name: "Loop lag, worst", column: "loop_lag_ms_max", colour: "purple", dash: "dotted" },
];

/** So many times the requests in flight, a line of the users would press all others flat. */
const FAR_ABOVE = 8;

/** What is drawn of the load: of an open loop's users, which are but a limit, only what it comes near. */
export function loadChart(history: History, isOpen: boolean): { title: string; lines: Line[] } {
  const most = (column: string) => Math.max(0, ...series(history, column).map(([, value]) => value ?? 0));
  const users = most("users");
  if (!isOpen || users < FAR_ABOVE * most("in_flight_peak")) return { title: "Requests in flight and users", lines: LOAD };
  const lines = LOAD.filter(({ column }) => column !== "users");
  return { title: `Requests in flight, of at most ${users.toLocaleString("en-US")}`, lines };
}

export function Charts({ history, dark }: { history: History; dark: boolean }) {
  const has = (line: Line | undefined) => line !== undefined && hasValues(series(history, line.column));
  const isOpen = has(TTFT_SCHEDULED[0]);
  const chart = (title: string, unit: string, lines: Line[], mark?: { value: number; label: string }) => (
    <Framed across={isOpen && lines === WAITS}>
      <TimeChart dark={dark} history={history} lines={lines.filter(has)} title={title} unit={unit} {...(mark && { mark })} />
    </Framed>
  );
  const load = loadChart(history, isOpen);
  // Seconds of their own width have no least and greatest beside them.
  const joined = history.points.some((point) => (point[1] as number) - (point[0] as number) > 1);
  const tokens = joined ? TOKENS : TOKENS.filter(({ column }) => !/_(min|max)$/.test(column));
  return (
    <Row of={2}>
      {chart("TTFT", "ms", TTFT)}
      {isOpen && chart("TTFT from schedule", "ms", TTFT_SCHEDULED)}
      {chart("TPOT and ITL", "ms", PER_TOKEN, READING_SPEED)}
      {chart("Tokens", "tok/s", tokens)}
      {chart("Requests by outcome", "req/s", REQUESTS)}
      {chart(load.title, "count", load.lines)}
      {chart(has(WAITS[0]) ? "User wait and lags of the generator" : "Lags of the generator", "ms", WAITS)}
      <Framed>
        <HeatMap column="ttft_ms_heat" dark={dark} history={history} title="TTFT, share of requests" />
      </Framed>
      <Framed>
        <HeatMap column="itl_ms_heat" dark={dark} history={history} title="ITL, share of tokens" />
      </Framed>
    </Row>
  );
}
