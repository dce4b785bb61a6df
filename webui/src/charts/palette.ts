/** Colours that colour-blind people tell apart (Okabe and Ito 2008), and those of Locust's own charts. */

export const FONT =
  'Roboto, Helvetica, Arial, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans CJK", sans-serif';

export interface Look {
  text: string;
  axis: string;
  split: string;
  ground: string;
  band: string;
  outside: string;
}

export const LIGHT: Look = {
  text: "#1f2937",
  axis: "#6b7280",
  split: "#e5e7eb",
  ground: "#ffffff",
  band: "rgba(21, 128, 61, 0.06)",
  outside: "rgba(107, 114, 128, 0.16)",
};

export const DARK: Look = {
  text: "#d1d9d5",
  axis: "#8b9a93",
  split: "#3f3f46",
  ground: "#1e1e1e",
  band: "rgba(74, 222, 128, 0.07)",
  outside: "rgba(161, 161, 170, 0.18)",
};

export const look = (dark: boolean) => (dark ? DARK : LIGHT);

const ON_LIGHT = { blue: "#0072b2", orange: "#c77800", green: "#00805e", red: "#d55e00", purple: "#a8508a", grey: "#6b7280" };
const ON_DARK = { blue: "#56b4e9", orange: "#e69f00", green: "#2fc79a", red: "#ff8a47", purple: "#e29ac6", grey: "#a1a1aa" };

export type Colour = keyof typeof ON_LIGHT;

export const colour = (name: Colour, dark: boolean) => (dark ? ON_DARK : ON_LIGHT)[name];

export const CYCLE: Colour[] = ["blue", "orange", "green", "red", "purple", "grey"];
/** Beside the colour, a mark's shape tells stages apart; with the sixth colour used up, a line's dashes do. */
export const SHAPES = ["circle", "triangle", "rect", "diamond"] as const;
export const DASHES: ("solid" | "dashed" | "dotted" | number[])[] = ["solid", "dashed", "dotted", [9, 3, 2, 3]];

/** Cividis, from few to many: even in brightness for every kind of sight. */
export const HEAT_LIGHT = ["#f4f1d0", "#e5cf62", "#b9a86f", "#848079", "#4a5a76", "#00204d"];
export const HEAT_DARK = ["#22365f", "#3d5484", "#666970", "#958f78", "#cbba69", "#ffea46"];
