/** Which run this is and how far it has come. */

import { Box, Typography } from "@mui/material";

import type { Now } from "../live/types";
import { span } from "../numbers";

function told(now: Now): string {
  const { progress, state } = now;
  if (state !== "running" || !progress) return state;
  const parts = [
    progress.stage === null ? "" : `stage ${String(progress.stage_number)} of ${String(progress.stages)}: ${progress.stage}`,
    progress.phase,
    `${span(progress.elapsed_s)} gone`,
    progress.left_s === null ? "" : `at least ${span(progress.left_s)} left`,
  ];
  return parts.filter(Boolean).join(" · ");
}

export function RunLine({ now }: { now: Now }) {
  const { run } = now;
  const about = [run.model, run.shape, ...Object.entries(run.tags).map(([key, value]) => `${key}=${value}`), run.note];
  return (
    <Box sx={{ mb: 1.5 }}>
      <Typography component="div" sx={{ fontSize: 17, fontWeight: 600, overflowWrap: "anywhere" }}>
        {run.run_id}
      </Typography>
      <Typography color="text.secondary" component="div" sx={{ overflowWrap: "anywhere" }} variant="body2">
        {about.filter(Boolean).join(" · ")}
      </Typography>
      <Typography aria-label="Progress" component="div" variant="body2">
        {told(now)}
      </Typography>
    </Box>
  );
}
