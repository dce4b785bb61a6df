/** ECharts for the report: the same parts, drawn as SVG. */

import * as core from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

import { PARTS } from "../charts/parts";

core.use([...PARTS, SVGRenderer]);

/** Begins a chart whose drawing can be scaled by CSS, as a sheet of paper asks for. */
function init(element: HTMLElement): core.ECharts {
  const chart = core.init(element, null, { renderer: "svg" });
  chart.on("rendered", () => {
    const size = `0 0 ${String(chart.getWidth())} ${String(chart.getHeight())}`;
    element.querySelector("svg")?.setAttribute("viewBox", size);
  });
  return chart;
}

export const SAVED_AS = "SVG";

export const echarts = { init };
