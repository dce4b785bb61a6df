/** How a number looks on a screen; the same rules as llm_locust/outputs/numbers.py. */

import type { Value } from "./live/types";

export const ABSENT = "–";
export const FEW = 100;

const isNumber = (value: Value | undefined): value is number => typeof value === "number" && Number.isFinite(value);

/** A tie goes to the even digit, as in Python: 33 requests in 8 s are 4.12 everywhere. */
const fixed = (value: number, decimals: number) =>
  value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, roundingMode: "halfEven" });

export const count = (value: Value | undefined) => (isNumber(value) ? fixed(value, 0) : ABSENT);

/** About three digits: 0.402, 5.29, 52.9, 529, 5,288. */
export function threeDigits(value: Value | undefined): string {
  if (!isNumber(value)) return ABSENT;
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

export const seconds = (valueMs: Value | undefined) => threeDigits(isNumber(valueMs) ? valueMs / 1000 : null);

export const percent = (ratio: Value | undefined) => (isNumber(ratio) ? `${threeDigits(ratio * 100)} %` : ABSENT);

/** A duration as people say it: 45s, 3m20s, 2h05m. */
export function span(durationS: number): string {
  const whole = Math.max(0, Math.round(durationS));
  const two = (n: number) => String(n).padStart(2, "0");
  if (whole < 60) return `${String(whole)}s`;
  if (whole < 3600) return `${String(Math.floor(whole / 60))}m${two(whole % 60)}s`;
  return `${String(Math.floor(whole / 3600))}h${two(Math.floor((whole % 3600) / 60))}m`;
}

export function bytes(size: number): string {
  if (size < 1024) return `${String(size)} B`;
  const [value, unit] = size < 1024 ** 2 ? [size / 1024, "KB"] : size < 1024 ** 3 ? [size / 1024 ** 2, "MB"] : [size / 1024 ** 3, "GB"];
  return `${threeDigits(value)} ${unit}`;
}
