/** Lines over time with the stages behind them. */

import type { EChartsOption, LineSeriesOption } from "echarts";
import { useMemo } from "react";

import { series } from "../live/history";
import type { History } from "../live/types";
import { threeDigits } from "../numbers";
import { bandArea } from "./bands";
import { base, lineLegend, timeAxis, valueAxis } from "./base";
import { Chart } from "./Chart";
import { colour, look, type Colour } from "./palette";

export interface Line {
  name: string;
  column: string;
  colour: Colour;
  dash?: "solid" | "dashed" | "dotted";
  step?: boolean;
  area?: boolean;
}

export interface TimeChartProps {
  title: string;
  unit: string;
  lines: Line[];
  history: History;
  dark: boolean;
  /** A thin line across, with what it means. */
  mark?: { value: number; label: string };
}

export function span(history: History): [number, number] {
  const first = history.points[0]?.[0] as number | undefined;
  const last = history.points.at(-1)?.[1] as number | undefined;
  return [(first ?? 0) * 1000, (last ?? 1) * 1000];
}

function lineSeries(line: Line, history: History, dark: boolean): LineSeriesOption {
  const shade = colour(line.colour, dark);
  return {
    type: "line",
    name: line.name,
    data: series(history, line.column),
    symbol: history.points.length < 3 ? "circle" : "none",
    symbolSize: 4,
    connectNulls: false,
    step: line.step ? "middle" : false,
    color: shade,
    lineStyle: { color: shade, width: 1.8, type: line.dash ?? "solid" },
    ...(line.area ? { areaStyle: { color: shade, opacity: 0.12 } } : {}),
  };
}

export function timeOption({ title, unit, lines, history, dark, mark }: TimeChartProps): EChartsOption {
  const [fromMs, untilMs] = span(history);
  const { axis, ground } = look(dark);
  const drawn = lines.map((line) => lineSeries(line, history, dark));
  const behind: LineSeriesOption = {
    type: "line",
    name: "stages",
    data: [],
    silent: true,
    markArea: bandArea(history.bands, fromMs, untilMs, dark),
    ...(mark && {
      markLine: {
        silent: true,
        symbol: "none",
        lineStyle: { color: axis, width: 1, type: "solid" },
        label: { formatter: mark.label, position: "insideStartTop", color: axis, fontSize: 11, distance: 2, backgroundColor: ground, opacity: 0.85, padding: [1, 3] },
        data: [{ yAxis: mark.value }],
      },
    }),
  };
  const common = base(title, dark);
  return {
    ...common,
    legend: { ...common.legend, ...lineLegend, data: lines.map(({ name }) => name) },
    tooltip: {
      ...common.tooltip,
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: axis } },
      valueFormatter: (value) => `${threeDigits(typeof value === "number" ? value : null)} ${unit}`,
    },
    xAxis: timeAxis(fromMs, untilMs, dark),
    yAxis: valueAxis(unit, dark),
    series: [...drawn, behind],
  };
}

export function TimeChart(props: TimeChartProps) {
  const { title, unit, lines, history, dark, mark } = props;
  const option = useMemo(
    () => timeOption({ title, unit, lines, history, dark, ...(mark && { mark }) }),
    [title, unit, lines, history, dark, mark],
  );
  return <Chart option={option} title={title} />;
}
