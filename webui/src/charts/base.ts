/** What all charts have in common. Texts are drawn on a canvas, tooltips too: nothing in a name is ever HTML. */

import type { EChartsOption } from "echarts";

import { FONT, look } from "./palette";

const clock = (ms: number) => new Date(ms).toLocaleTimeString("en-GB");

/** The time of day of an axis; minutes where seconds would say nothing. */
export function timeLabel(fromMs: number, untilMs: number) {
  const withSeconds = untilMs - fromMs < 20 * 60_000;
  return (ms: number) => (withSeconds ? clock(ms) : clock(ms).slice(0, 5));
}

export function base(title: string, dark: boolean): EChartsOption {
  const { text, axis, ground } = look(dark);
  return {
    animation: false,
    aria: { enabled: false },
    backgroundColor: "transparent",
    textStyle: { color: text, fontFamily: FONT },
    title: { text: title, left: 0, top: 0, textStyle: { color: text, fontFamily: FONT, fontSize: 15, fontWeight: 600 } },
    grid: { left: 12, right: 18, top: 74, bottom: 8, containLabel: true },
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
        saveAsImage: { title: "PNG", name: title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-"), backgroundColor: ground },
      },
    },
  };
}

export function valueAxis(name: string, dark: boolean) {
  const { text, axis, split } = look(dark);
  return {
    type: "value" as const,
    name,
    nameGap: 8,
    nameTextStyle: { color: axis, align: "left" as const, fontFamily: FONT },
    min: 0,
    boundaryGap: [0, "5%"] as [number, string],
    axisLabel: { color: text, formatter: (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 3 }) },
    axisLine: { show: false, lineStyle: { color: axis } },
    splitLine: { lineStyle: { color: split } },
  };
}

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
