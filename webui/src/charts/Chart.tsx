/** One ECharts drawing as a component: it follows its option, the theme and the room it has. */

import type { EChartsOption } from "echarts";
import { useEffect, useRef, type CSSProperties } from "react";

import { echarts } from "./echarts";

interface ChartProps {
  /** Says what is drawn, to those who cannot see it and to tests. */
  title: string;
  option: EChartsOption;
  height?: number;
}

export function Chart({ title, option, height = 300 }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<ReturnType<typeof echarts.init>>(null);
  useEffect(() => {
    if (!element.current) return;
    const made = echarts.init(element.current);
    chart.current = made;
    const watch = new ResizeObserver(() => {
      made.resize();
    });
    watch.observe(element.current);
    return () => {
      watch.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(() => {
    chart.current?.setOption(option, { replaceMerge: ["series", "yAxis"] });
  }, [option]);
  const size = { "--height": `${String(height)}px`, height: "var(--height)", width: "100%" } as CSSProperties;
  return <div aria-label={title} ref={element} role="img" style={size} />;
}
