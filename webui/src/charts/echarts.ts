/** ECharts for the live page, drawn on canvas. */

import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

import { PARTS } from "./parts";

echarts.use([...PARTS, CanvasRenderer]);

/** What the toolbox saves: pixels here; the report draws, and saves, SVG. */
export const SAVED_AS = "PNG";

export { echarts };
