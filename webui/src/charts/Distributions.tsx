/** What percentiles hide: latency CDF by stage, and latency against lengths, from a bounded sample of requests. */

import type { EChartsOption, SeriesOption } from "echarts";
import { useMemo } from "react";

import type { SampledRequest, SampledStage } from "../live/types";
import { threeDigits } from "../numbers";
import { base, bottomAxis, lineLegend, logTicks, valueAxis } from "./base";
import { Chart } from "./Chart";
import { colour, CYCLE, DASHES, look, SHAPES } from "./palette";

/** Places in a sampled request. */
export const E2E = 0;
export const TTFT = 1;
export const TPOT = 2;
export const INPUT = 3;
export const OUTPUT = 4;

export const stageColour = (place: number, dark: boolean) => colour(CYCLE[place % CYCLE.length] ?? "grey", dark);
/** Shapes go along with the colours; after twelve stages they shift, so that no two of 24 look alike. */
export const stageShape = (place: number) => SHAPES[(place + Math.floor(place / 12)) % SHAPES.length] ?? "circle";
export const stageDash = (place: number) => DASHES[Math.floor(place / CYCLE.length) % DASHES.length] ?? "solid";

/** TTFT and TPOT are shown in ms and E2E in s, as in every table. */
const shownUnit = (place: number) => (place === E2E ? { unit: "s", perMs: 0.001 } : { unit: "ms", perMs: 1 });

/** The steps of the empirical CDF, in % of the requests that have the value. */
export function cdf(requests: SampledRequest[], place: number): [number, number][] {
  const values = requests.map((request) => request[place]).filter((value) => value !== null && value !== undefined);
  return values.sort((a, b) => a - b).map((value, at) => [value, (100 * (at + 1)) / values.length]);
}

interface CdfProps {
  title: string;
  place: number;
  stages: SampledStage[];
  dark: boolean;
}

export function Cdf({ title, place, stages, dark }: CdfProps) {
  const option = useMemo((): EChartsOption => {
    const common = base(title, dark);
    const { text } = look(dark);
    const { unit, perMs } = shownUnit(place);
    const steps = stages.map(({ requests }) => cdf(requests, place).map(([ms, share]): [number, number] => [ms * perMs, share]));
    const ticks = logTicks(
      Math.min(...steps.flatMap((points) => points[0]?.[0] ?? [])),
      Math.max(...steps.flatMap((points) => points.at(-1)?.[0] ?? [])),
    );
    return {
      ...common,
      legend: { ...common.legend, ...lineLegend },
      tooltip: {
        ...common.tooltip,
        trigger: "item",
        formatter: (params) => {
          const { seriesName, value } = params as unknown as { seriesName: string; value: [number, number] };
          return `${seriesName}\n${threeDigits(value[1])} % ≤ ${threeDigits(value[0])} ${unit}`;
        },
      },
      xAxis: {
        ...bottomAxis(`${unit} (log)`, dark),
        type: "log",
        min: "dataMin",
        max: "dataMax",
        boundaryGap: undefined,
        axisTick: { customValues: ticks },
        axisLabel: { color: text, hideOverlap: true, customValues: ticks, formatter: (value: number) => value.toLocaleString("en-US", { maximumSignificantDigits: 4 }) },
      } as never,
      yAxis: { ...valueAxis("% of requests", dark), max: 100 },
      grid: { left: 12, right: 18, top: 74, bottom: 26, containLabel: true },
      series: stages.map(({ stage, requests }, at): SeriesOption => ({
        type: "line",
        step: "end",
        name: stage,
        data: steps[at] ?? [],
        symbol: stageShape(at),
        symbolSize: 5,
        showSymbol: requests.length < 30,
        color: stageColour(at, dark),
        lineStyle: { width: 1.8, type: stageDash(at) },
      })),
    };
  }, [title, place, stages, dark]);
  return <Chart height={340} option={option} title={title} />;
}

interface AgainstProps {
  title: string;
  x: number;
  y: number;
  xName: string;
  stages: SampledStage[];
  dark: boolean;
}

export function Against({ title, x, y, xName, stages, dark }: AgainstProps) {
  const option = useMemo((): EChartsOption => {
    const common = base(title, dark);
    const { unit, perMs } = shownUnit(y);
    return {
      ...common,
      legend: { ...common.legend, icon: undefined, itemWidth: 12, itemHeight: 10 } as never,
      tooltip: {
        ...common.tooltip,
        trigger: "item",
        formatter: (params) => {
          const { seriesName, value } = params as unknown as { seriesName: string; value: [number, number] };
          return `${seriesName}\n${value[0].toLocaleString("en-US")} tokens\n${threeDigits(value[1])} ${unit}`;
        },
      },
      xAxis: {
        ...bottomAxis(xName, dark),
        scale: true,
        min: undefined,
      } as never,
      yAxis: valueAxis(unit, dark),
      grid: { left: 12, right: 18, top: 74, bottom: 26, containLabel: true },
      series: stages.map(({ stage, requests }, at): SeriesOption => ({
        type: "scatter",
        name: stage,
        symbol: stageShape(at),
        symbolSize: 6,
        color: stageColour(at, dark),
        itemStyle: { opacity: 0.65 },
        data: requests.flatMap((request) => {
          const [across, up] = [request[x], request[y]];
          return across === null || up === null || across === undefined || up === undefined ? [] : [[across, up * perMs]];
        }),
      })),
    };
  }, [title, x, y, xName, stages, dark]);
  return <Chart height={340} option={option} title={title} />;
}
