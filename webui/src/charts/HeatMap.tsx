/** How many samples lay where at each time, on a log scale: two modes are seen that a percentile hides. */

import type { CustomSeriesRenderItem, EChartsOption } from "echarts";
import { useMemo } from "react";

import type { History } from "../live/types";
import { threeDigits } from "../numbers";
import { base, TIME_RIGHT, timeAxis, timeLabel } from "./base";
import { Chart } from "./Chart";
import { FONT, HEAT_DARK, HEAT_LIGHT, look } from "./palette";
import { span } from "./TimeChart";

export interface HeatMapProps {
  title: string;
  column: string;
  history: History;
  dark: boolean;
}

/** From ms, until ms, low ms, high ms, samples, share of the time's samples. */
export type HeatCell = [number, number, number, number, number, number];

const MOST_TIMES = 120;
/** Gaps of tokens that came in one read are 0: what is below this is drawn in its lowest row. */
const LEAST_MS = 0.1;

interface Time {
  fromS: number;
  untilS: number;
  counts: Map<number, number>;
}

/** Joins neighbouring points until each time is wide enough to have samples that say something. */
function times(history: History, place: number): Time[] {
  const { lowest_ms: lowest, ratio } = history.heat;
  const least = Math.max(0, Math.floor(Math.log(LEAST_MS / lowest) / Math.log(ratio)));
  const [fromMs, untilMs] = span(history);
  const leastS = (untilMs - fromMs) / 1000 / MOST_TIMES;
  const joined: Time[] = [];
  for (const point of history.points) {
    const [fromS, untilS] = [point[0] as number, point[1] as number];
    let time = joined.at(-1);
    if (time === undefined || time.untilS - time.fromS >= leastS) {
      time = { fromS, untilS, counts: new Map() };
      joined.push(time);
    }
    time.untilS = untilS;
    const heat = point[place];
    if (!Array.isArray(heat)) continue;
    const [first = 0, ...counts] = heat;
    for (const [offset, n] of counts.entries()) {
      const bin = Math.max(first + offset, least);
      if (n > 0) time.counts.set(bin, (time.counts.get(bin) ?? 0) + n);
    }
  }
  return joined;
}

export function heatCells(history: History, column: string): HeatCell[] {
  const { lowest_ms: lowest, ratio } = history.heat;
  return times(history, history.columns.indexOf(column)).flatMap(({ fromS, untilS, counts }) => {
    const all = [...counts.values()].reduce((sum, n) => sum + n, 0);
    return [...counts].map(
      ([bin, n]): HeatCell => [fromS * 1000, untilS * 1000, lowest * ratio ** bin, lowest * ratio ** (bin + 1), n, n / all],
    );
  });
}

/** The colour of a share: each step stands for half of the share above it. */
export function heatColour(share: number, colours: string[]): string {
  const step = Math.max(0, colours.length - 1 + Math.ceil(Math.log2(Math.max(share, 1e-6))));
  return colours[Math.min(step, colours.length - 1)] ?? "transparent";
}

/** What is drawn in the lowest row may be less. */
export function heightLabel(valueMs: number): string {
  if (valueMs < LEAST_MS) return "";
  return `${valueMs > LEAST_MS ? "" : "≤ "}${valueMs.toLocaleString("en-US", { maximumFractionDigits: 3 })}`;
}

function heatOption({ title, column, history, dark }: HeatMapProps): EChartsOption {
  const [fromMs, untilMs] = span(history);
  const { text, axis, split } = look(dark);
  const colours = dark ? HEAT_DARK : HEAT_LIGHT;
  const cells = heatCells(history, column);
  const lows = cells.map(([, , low]) => low);
  const highs = cells.map(([, , , high]) => high);
  const renderItem: CustomSeriesRenderItem = (_, api) => {
    const [left = 0, top = 0] = api.coord([api.value(0), api.value(3)]);
    const [right = 0, bottom = 0] = api.coord([api.value(1), api.value(2)]);
    const shape = { x: left, y: top, width: Math.max(right - left, 1) + 0.5, height: bottom - top + 0.5 };
    return { type: "rect", shape, style: { fill: heatColour(Number(api.value(5)), colours) } };
  };
  const common = base(title, dark);
  const at = timeLabel(fromMs, untilMs);
  return {
    ...common,
    legend: { show: false },
    grid: { left: 12, right: TIME_RIGHT, top: 52, bottom: 8, containLabel: true },
    tooltip: {
      ...common.tooltip,
      trigger: "item",
      formatter: (params) => {
        const [start, , low, high, n, share] = (params as unknown as { value: HeatCell }).value;
        return `${at(start)}\n${threeDigits(low)} – ${threeDigits(high)} ms\n${n.toLocaleString("en-US")} (${threeDigits(share * 100)} %)`;
      },
    },
    xAxis: timeAxis(fromMs, untilMs, dark),
    yAxis: {
      type: "log",
      name: "ms (log)",
      nameGap: 8,
      nameTextStyle: { color: axis, align: "left", fontFamily: FONT },
      min: lows.length ? Math.max(10 ** Math.floor(Math.log10(Math.min(...lows))), LEAST_MS / 2) : 1,
      max: highs.length ? 10 ** Math.ceil(Math.log10(Math.max(...highs))) : 1000,
      axisLabel: { color: text, formatter: heightLabel },
      splitLine: { lineStyle: { color: split } },
    },
    series: [{ type: "custom", name: title, renderItem, data: cells, encode: { x: [0, 1], y: [2, 3] }, clip: true }],
  };
}

export function HeatMap({ title, column, history, dark }: HeatMapProps) {
  const option = useMemo(() => heatOption({ title, column, history, dark }), [title, column, history, dark]);
  return (
    <>
      <Chart height={280} option={option} title={title} />
      <Scale dark={dark} />
    </>
  );
}

/** What the colours say, in words that fit a line. */
function Scale({ dark }: { dark: boolean }) {
  const colours = dark ? HEAT_DARK : HEAT_LIGHT;
  const { axis } = look(dark);
  return (
    <div className="scale" style={{ color: axis, display: "flex", fontSize: 11, gap: 10, height: 20, justifyContent: "flex-end" }}>
      <span>share of its time:</span>
      {colours.map((shade, step) => (
        <span key={shade} style={{ whiteSpace: "nowrap" }}>
          <span style={{ background: shade, border: `1px solid ${axis}`, display: "inline-block", height: 10, marginRight: 3, width: 14 }} />
          {step === 0 ? "less" : `> ${threeDigits(100 / 2 ** (colours.length - step))} %`}
        </span>
      ))}
    </div>
  );
}
