/** ECharts for the report: the same parts, drawn as SVG, and names of points that keep out of each other's way. */

import type { EChartsOption } from "echarts";
import * as core from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";

import { PARTS } from "../charts/parts";

core.use([...PARTS, LabelLayout, SVGRenderer]);

/** Begins a chart whose drawing can be scaled by CSS, as a sheet of paper asks for. */
function init(element: HTMLElement): core.ECharts {
  const chart = core.init(element, null, { renderer: "svg" });
  chart.on("rendered", () => {
    const size = `0 0 ${String(chart.getWidth())} ${String(chart.getHeight())}`;
    element.querySelector("svg")?.setAttribute("viewBox", size);
  });
  return chart;
}

/** Draws a chart at once in the room that it has now, with other parts. */
export function redraw(element: HTMLElement, parts: EChartsOption) {
  const chart = core.getInstanceByDom(element);
  chart?.setOption(parts, { lazyUpdate: true });
  chart?.resize();
  chart?.getZr().flush();
}

export const SAVED_AS = "SVG";

export const echarts = { init };
