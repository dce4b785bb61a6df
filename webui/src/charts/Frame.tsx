/** What stands side by side, and the frame of a chart. */

import { Box, Paper } from "@mui/material";
import type { ReactNode } from "react";

/** `across` fills its row, where an odd number of charts would leave a hole. */
export function Framed({ children, across = false }: { children: ReactNode; across?: boolean }) {
  return <Paper sx={{ p: 1.5, minWidth: 0, ...(across && { gridColumn: "1 / -1" }) }}>{children}</Paper>;
}

/** So many in a row where the page is wide enough, one below the other where it is not. */
export function Row({ of, children }: { of: number; children: ReactNode }) {
  const wide = `repeat(${String(of)}, minmax(0, 1fr))`;
  return (
    <Box className={`row-of-${String(of)}`} sx={{ display: "grid", gap: 1.5, gridTemplateColumns: { xs: "minmax(0, 1fr)", lg: wide } }}>
      {children}
    </Box>
  );
}
