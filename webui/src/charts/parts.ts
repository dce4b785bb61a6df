/** The parts of ECharts that are used; everything else stays out of the bundle. What draws them is chosen elsewhere. */

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

export const PARTS = [
  AriaComponent,
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
];
