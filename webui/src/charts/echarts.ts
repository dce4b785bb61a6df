/** The parts of ECharts that are used; everything else stays out of the bundle. */

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
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

echarts.use([
  AriaComponent,
  CanvasRenderer,
  CustomChart,
  GridComponent,
  LegendScrollComponent,
  LineChart,
  MarkAreaComponent,
  MarkLineComponent,
  ScatterChart,
  TitleComponent,
  ToolboxComponent,
  TooltipComponent,
]);

/** What the toolbox saves: pixels here; the report draws, and saves, SVG. */
export const SAVED_AS = "PNG";

export { echarts };
