/** Throughput against latency: a point a stage, in the order of the load. */

import type { EChartsOption, LineSeriesOption } from "echarts";
import { useMemo } from "react";

import { base, bottomAxis, valueAxis } from "../charts/base";
import { Chart } from "../charts/Chart";
import { colour, look, type Colour } from "../charts/palette";
import type { Now, StageRow } from "../live/types";
import { threeDigits } from "../numbers";
import { reader, scheduled } from "../tables/rows";

interface Of {
  name: string;
  column: string;
  colour: Colour;
  dash?: "solid" | "dashed";
}

interface CurveProps {
  title: string;
  unit: string;
  of: Of[];
  now: Now;
  dark: boolean;
}

type Place = [number, number, string];

/** Output tok/s, latency and name of each stage that has both. */
export function places(now: Now, column: string): Place[] {
  const read = reader(now.columns);
  return now.rows
    .filter(({ name }) => name === "all")
    .flatMap((row: StageRow): Place[] => {
      const across = read(row, "output_tok_per_s");
      const up = read(row, read(row, "load") === "open loop" ? scheduled(column) : column);
      return typeof across === "number" && typeof up === "number" ? [[across, up, row.stage]] : [];
    });
}

export function Curve({ title, unit, of, now, dark }: CurveProps) {
  const option = useMemo((): EChartsOption => {
    const common = base(title, dark);
    const { text } = look(dark);
    return {
      ...common,
      grid: { left: 12, right: 64, top: 74, bottom: 26, containLabel: true },
      tooltip: {
        ...common.tooltip,
        trigger: "item",
        formatter: (params) => {
          const { seriesName, value } = params as unknown as { seriesName: string; value: Place };
          return `${value[2]}\n${threeDigits(value[0])} output tok/s\n${seriesName} ${threeDigits(value[1])} ${unit}`;
        },
      },
      xAxis: bottomAxis("output tok/s", dark),
      yAxis: valueAxis(unit, dark),
      series: of.map(({ name, column, colour: shade, dash }, at): LineSeriesOption => ({
        type: "line",
        name,
        data: places(now, column),
        symbol: at === 0 ? "circle" : "triangle",
        symbolSize: 8,
        color: colour(shade, dark),
        lineStyle: { width: 1.8, type: dash ?? "solid" },
        label: {
          show: at === of.length - 1,
          position: "top",
          color: text,
          // What only touches is no overlap to ECharts: blanks keep the names apart.
          formatter: (params) => `\u00a0${(params.value as Place)[2]}\u00a0`,
        },
        labelLayout: { hideOverlap: true },
      })),
    };
  }, [title, unit, of, now, dark]);
  return <Chart height={340} option={option} title={title} />;
}
