/** The stages as bands behind a chart: every other one tinted, what is outside of the measured windows in grey. */

import type { Band } from "../live/types";
import { look } from "./palette";

const LEAST_SHARE_FOR_LABEL = 0.07;
const LONGEST_LABEL = 18;

export interface Extent {
  stage: string;
  fromMs: number;
  untilMs: number;
}

/** Joins the phases of each stage. */
export function extents(bands: Band[]): Extent[] {
  const found: Extent[] = [];
  for (const [stage, , from, until] of bands) {
    const last = found.at(-1);
    if (stage === null) continue;
    if (last?.stage === stage) last.untilMs = until * 1000;
    else found.push({ stage, fromMs: from * 1000, untilMs: until * 1000 });
  }
  return found;
}

const shortened = (text: string) => (text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text);

export function bandArea(bands: Band[], fromMs: number, untilMs: number, dark: boolean) {
  const { band, outside, axis } = look(dark);
  const stages = extents(bands).map(({ stage, fromMs: start, untilMs: end }, place) => [
    {
      xAxis: start,
      itemStyle: { color: place % 2 === 0 ? band : "transparent" },
      label: {
        show: (end - start) / (untilMs - fromMs) > LEAST_SHARE_FOR_LABEL,
        formatter: shortened(stage),
        position: "insideTop" as const,
        color: axis,
        fontSize: 11,
      },
    },
    { xAxis: end },
  ]);
  const unmeasured = bands
    .filter(([stage, phase]) => stage !== null && phase !== "steady" && phase !== null && phase !== "")
    .map(([, , start, end]) => [
      { xAxis: start * 1000, itemStyle: { color: outside }, label: { show: false } },
      { xAxis: end * 1000 },
    ]);
  return { silent: true, data: [...stages, ...unmeasured] as never };
}
