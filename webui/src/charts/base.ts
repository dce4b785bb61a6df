/** What all charts have in common. Texts are drawn on a canvas, tooltips too: nothing in a name is ever HTML. */

import type { EChartsOption } from "echarts";

import { SAVED_AS } from "./echarts";
import { FONT, look } from "./palette";

const clock = (ms: number) => new Date(ms).toLocaleTimeString("en-GB");

/** The time of day of an axis; minutes where seconds would say nothing. */
export function timeLabel(fromMs: number, untilMs: number) {
  const withSeconds = untilMs - fromMs < 20 * 60_000;
  return (ms: number) => (withSeconds ? clock(ms) : clock(ms).slice(0, 5));
}

/** Half of a time's width: the last one stands below the end of its axis. */
export const TIME_RIGHT = 34;

export function base(title: string, dark: boolean): EChartsOption {
  const { text, axis, ground } = look(dark);
  return {
    animation: false,
    aria: { enabled: false },
    backgroundColor: "transparent",
    textStyle: { color: text, fontFamily: FONT },
    title: { text: title, left: 0, top: 0, textStyle: { color: text, fontFamily: FONT, fontSize: 15, fontWeight: 600 } },
    grid: { left: 12, right: TIME_RIGHT, top: 74, bottom: 8, containLabel: true },
    legend: {
      type: "scroll",
      top: 24,
      left: 0,
      right: 0,
      itemWidth: 22,
      itemHeight: 8,
      inactiveColor: axis,
      pageIconColor: text,
      pageTextStyle: { color: text },
      textStyle: { color: text, fontFamily: FONT },
    },
    tooltip: {
      renderMode: "richText",
      confine: true,
      backgroundColor: ground,
      borderColor: axis,
      textStyle: { color: text, fontFamily: FONT, fontSize: 12 },
    },
    toolbox: {
      right: 0,
      top: -4,
      itemSize: 13,
      iconStyle: { borderColor: axis },
      feature: {
        dataZoom: { yAxisIndex: "none", title: { zoom: "Zoom", back: "Back" } },
        saveAsImage: { title: SAVED_AS, name: title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-"), backgroundColor: ground },
      },
    },
  };
}

/** What a value axis may end at, in each decade: ECharts divides each of these evenly. */
const ENDS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
/** Above the greatest value is room for the names of stages. */
const HEADROOM = 1.15;

export function axisEnd(greatest: number): number | null {
  if (!(greatest > 0)) return null;
  const wanted = greatest * HEADROOM;
  const decade = 10 ** Math.floor(Math.log10(wanted));
  return Number(((ENDS.find((end) => end * decade >= wanted) ?? 10) * decade).toPrecision(12));
}

function linearAxis(name: string, dark: boolean) {
  const { text, axis, split } = look(dark);
  return {
    type: "value" as const,
    name,
    nameGap: 8,
    nameTextStyle: { color: axis, align: "left" as const, fontFamily: FONT },
    min: 0,
    axisLabel: { color: text, formatter: (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 3 }) },
    axisLine: { show: false, lineStyle: { color: axis } },
    splitLine: { lineStyle: { color: split } },
  };
}

export function valueAxis(name: string, dark: boolean) {
  // With null ECharts finds an end by itself, which its types leave out.
  return { ...linearAxis(name, dark), max: ({ max }: { max: number }) => axisEnd(max) as number };
}

/** An axis below the drawing, with its name in the middle. */
export function bottomAxis(name: string, dark: boolean) {
  const { text } = look(dark);
  const gap: [number, string] = [0, "5%"];
  return { ...linearAxis(name, dark), boundaryGap: gap, nameLocation: "middle" as const, nameGap: 26, nameTextStyle: { color: text } };
}

/** From this ratio of greatest to least on, the steps of a log axis are those of a decade; below, they are even. */
const EVEN_BELOW = 4;
/** What is labelled in each decade, by how many decades there are to label. */
const STEPS: [number, number[]][] = [
  [1, [1, 1.5, 2, 3, 4, 5, 7]],
  [2.2, [1, 2, 5]],
  [4, [1, 3]],
  [Infinity, [1]],
];

/** The values that a log axis labels: some five of them, whatever the range; ECharts has powers of ten only. */
export function logTicks(least: number, greatest: number): number[] {
  if (!(least > 0) || !(greatest > least)) return least === greatest ? [least] : [];
  const within = (value: number) => value >= least && value <= greatest;
  if (greatest / least < EVEN_BELOW) {
    const size = 10 ** Math.floor(Math.log10((greatest - least) / 4));
    const step = size * ([1, 2, 5, 10].find((part) => part * size >= (greatest - least) / 4) ?? 10);
    const first = Math.ceil(least / step);
    return Array.from({ length: 6 }, (_, at) => Number(((first + at) * step).toPrecision(12))).filter(within);
  }
  const decades = Math.log10(greatest / least);
  const steps = STEPS.find(([most]) => decades <= most)?.[1] ?? [1];
  const first = Math.floor(Math.log10(least));
  return Array.from({ length: Math.ceil(decades) + 2 }, (_, at) => 10 ** (first + at))
    .flatMap((decade) => steps.map((part) => Number((part * decade).toPrecision(12))))
    .filter(within);
}

/** A legend of lines shows how each is dashed, which a mark upon it would hide. */
export const lineLegend = { itemStyle: { opacity: 0 }, itemWidth: 28 };

export function timeAxis(fromMs: number, untilMs: number, dark: boolean) {
  const { text, axis } = look(dark);
  const at = timeLabel(fromMs, untilMs);
  // What only touches is no overlap to ECharts: blanks keep the times apart.
  const apart = (ms: number) => `\u00a0${at(ms)}\u00a0`;
  return {
    type: "time" as const,
    min: fromMs,
    max: untilMs,
    splitNumber: 6,
    axisLabel: { color: text, formatter: apart, hideOverlap: true, alignMaxLabel: "right" as const, alignMinLabel: "left" as const },
    axisLine: { lineStyle: { color: axis } },
    splitLine: { show: false },
  };
}
