/** ECharts for the report: the same parts, drawn as SVG. */

import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  GridComponent,
  LegendScrollComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent,
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import * as core from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

core.use([
  AriaComponent,
  CustomChart,
  GridComponent,
  LegendScrollComponent,
  LineChart,
  MarkAreaComponent,
  MarkLineComponent,
  ScatterChart,
  SVGRenderer,
  TitleComponent,
  ToolboxComponent,
  TooltipComponent,
]);

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
