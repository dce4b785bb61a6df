/** What llm_locust/outputs/report.py puts into the page. */

import type { History, Now, SampledStage, Verdict } from "../live/types";

export interface MetricFormula {
  name: string;
  title: string;
  unit: string;
  formula: string;
  better: "low" | "high" | "none";
}

export interface Report {
  verdict: string;
  now: Now;
  history: History;
  distributions: SampledStage[];
  /** By stage, and `run` for the whole. */
  validity: Record<string, Verdict>;
  settings: Record<string, unknown>;
  server: Record<string, unknown>;
  /** How prompts of a given length were made. */
  lengths: Record<string, unknown>[];
  repeat_command: string;
  formulas: MetricFormula[];
  not_whole: Record<string, string>;
}
