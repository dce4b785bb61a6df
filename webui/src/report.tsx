/** The report of one run: the live page's components with the numbers in the page itself. */

import { CssBaseline, GlobalStyles } from "@mui/material";
import { createTheme, ThemeProvider } from "@mui/material/styles";
import { useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";

import { FONT } from "./charts/palette";
import { drawFor, PAPER } from "./report/paper";
import { ReportView } from "./report/ReportView";
import type { Report } from "./report/types";

/** Dark where the reader's system is; paper is white. */
function useDark(): boolean {
  const [dark, setDark] = useState(() => window.matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const follow = () => { setDark(system.matches); };
    const toPaper = () => {
      flushSync(() => { setDark(false); });
      drawFor("paper");
    };
    const toScreen = () => {
      flushSync(follow);
      drawFor("screen");
    };
    system.addEventListener("change", follow);
    window.addEventListener("beforeprint", toPaper);
    window.addEventListener("afterprint", toScreen);
    return () => {
      system.removeEventListener("change", follow);
      window.removeEventListener("beforeprint", toPaper);
      window.removeEventListener("afterprint", toScreen);
    };
  }, []);
  return dark;
}

const LIGHT = { mode: "light", primary: { main: "#15803d" }, background: { default: "#ffffff" } } as const;
const DARK = { mode: "dark", primary: { main: "#10b981" }, background: { default: "#121212", paper: "#1e1e1e" } } as const;

function App({ report }: { report: Report }) {
  const dark = useDark();
  const theme = createTheme({ palette: dark ? DARK : LIGHT, typography: { fontFamily: FONT } });
  return (
    <ThemeProvider theme={theme}>
      <CssBaseline />
      <GlobalStyles styles={PAPER as never} />
      <ReportView dark={dark} report={report} />
    </ThemeProvider>
  );
}

const root = document.getElementById("root");
const numbers = document.getElementById("run")?.textContent;
if (root && numbers) {
  const report = JSON.parse(numbers) as Report;
  document.title = `${report.now.run.run_id} – llm-locust`;
  createRoot(root).render(<App report={report} />);
}
