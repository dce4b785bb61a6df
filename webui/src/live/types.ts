/** What the master answers (llm_locust/outputs/live.py); null is absent, never 0. */

export type Value = number | string | null;

export interface Verdict {
  validity: "VALID" | "SUSPECT" | "INVALID";
  reasons: string[];
  findings: string[];
  finished: boolean;
}

export interface SloClause {
  clause: string;
  metric: string;
  unit: string;
  wanted: string;
  got: number | null;
  n: number;
  passed: boolean;
}

export interface StageRow {
  stage: string;
  name: string;
  phase: string;
  values: Value[];
  outcomes: Record<string, number>;
  verdict: Verdict | null;
  slo: SloClause[];
  meets_slo: boolean | null;
  best: boolean;
  tok_per_s_per_gpu: number | null;
  cost_per_million_tokens: number | null;
}

export interface Run {
  run_id: string;
  started: string;
  host: string;
  model: string | null;
  shape: string | null;
  note: string;
  tags: Record<string, string>;
  seeds: Record<string, number>;
  versions: Record<string, string>;
}

export interface Progress {
  stage: string | null;
  phase: string;
  stage_number: number;
  stages: number;
  users: number;
  in_flight: number;
  elapsed_s: number;
  left_s: number | null;
}

export interface Failure {
  outcome: string;
  http_status: number | null;
  count: number;
  sample: string;
}

export interface WorkerNow {
  worker: string;
  host: string;
  timestamp_source: string;
  users: number | null;
  in_flight: number | null;
  output_tok_per_s: number | null;
  loop_lag_p99_ms: number | null;
  cpu_percent: number | null;
  report_age_s: number | null;
  clock_offset_ms: number | null;
  lost: boolean;
}

export interface Formula {
  title: string;
  unit: string;
  formula: string;
}

export interface Now {
  run: Run;
  state: "running" | "finished" | "stopped" | "aborted";
  at_s: number;
  progress: Progress | null;
  recent: Record<string, number | null>;
  columns: string[];
  formulas: Record<string, Formula>;
  rows: StageRow[];
  excluded: StageRow[];
  total: StageRow;
  skipped: Record<string, string>;
  failures: Failure[];
  workers: WorkerNow[];
}

export type Cell = number | number[] | null;
/** Stage, phase, from and until in epoch seconds. */
export type Band = [string | null, string | null, number, number];

export interface History {
  columns: string[];
  heat: { lowest_ms: number; ratio: number };
  points: Cell[][];
  bands: Band[];
}

export interface Answer {
  token: string;
  whole: boolean;
  now: Now | null;
  history?: History;
}

/** E2E ms, TTFT ms, TPOT ms, input tokens, output tokens of one request. */
export type SampledRequest = [number, number | null, number | null, number | null, number | null];

export interface SampledStage {
  stage: string;
  seen: number;
  requests: SampledRequest[];
}
