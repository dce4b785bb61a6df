/** How each stage is drawn in the charts below, all of them at once: the legends of the charts themselves are paged. */

import { Box } from "@mui/material";

import type { SampledStage } from "../live/types";
import { stageColour, stageDash, stageShape } from "./Distributions";

const MARKS = {
  circle: <circle cx="14" cy="5" r="3.5" />,
  triangle: <path d="M14 1 18 8.5 10 8.5Z" />,
  rect: <rect height="7" width="7" x="10.5" y="1.5" />,
  diamond: <path d="M14 0.5 18 5 14 9.5 10 5Z" />,
};
const GAPS = { solid: "", dashed: "6 3", dotted: "1.5 2" };

export function StageKey({ stages, dark }: { stages: SampledStage[]; dark: boolean }) {
  return (
    <Box className="key" sx={{ display: "none", flexWrap: "wrap", columnGap: 2, rowGap: 0.25, mb: 1 }}>
      {stages.map(({ stage }, place) => {
        const shade = stageColour(place, dark);
        const dash = stageDash(place);
        return (
          <span key={stage}>
            <svg fill={shade} height="10" style={{ marginRight: 4 }} width="28">
              <path d="M0 5H28" stroke={shade} strokeDasharray={typeof dash === "string" ? GAPS[dash] : dash.join(" ")} strokeWidth="1.8" />
              {MARKS[stageShape(place)]}
            </svg>
            {stage}
          </span>
        );
      })}
    </Box>
  );
}
