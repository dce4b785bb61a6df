/** Locust's theme with a font for every script. */

import { createTheme, ThemeProvider, useTheme } from "@mui/material/styles";
import { useMemo, type ReactNode } from "react";

import { FONT } from "../charts/palette";

/** Locust's green is too dark for words on black. */
const ON_DARK = { primary: { main: "#10b981" } };

export function Look({ children }: { children: ReactNode }) {
  const outer = useTheme();
  const theme = useMemo(
    () => createTheme({ palette: { ...outer.palette, ...(outer.palette.mode === "dark" && ON_DARK) }, typography: { fontFamily: FONT } }),
    [outer.palette],
  );
  return <ThemeProvider theme={theme}>{children}</ThemeProvider>;
}
