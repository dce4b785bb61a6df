/** Locust's theme with a font for every script. */

import { createTheme, ThemeProvider, useTheme } from "@mui/material/styles";
import { useMemo, type ReactNode } from "react";

import { FONT } from "../charts/palette";

export function Look({ children }: { children: ReactNode }) {
  const outer = useTheme();
  const theme = useMemo(
    () => createTheme({ palette: outer.palette, typography: { fontFamily: FONT } }),
    [outer.palette],
  );
  return <ThemeProvider theme={theme}>{children}</ThemeProvider>;
}
