/** How the page becomes paper: A4 on its side, two charts a row, nothing cut by the end of a sheet. */

import { redraw } from "./echarts";

/** Charts are drawn for a sheet of this width and fitted to the paper: their words are then as large as those of tables. */
const DRAWN_PX = 1340;
/** Three rows of charts on a sheet. */
const HEIGHT = 0.83;

export const PAPER = {
  "[role=img] svg": { maxWidth: "100%" },
  "@media screen and (max-width: 1500px)": {
    "table[aria-label=Stages] :is(td, th)": { fontSize: "12px !important", padding: "4px 3px !important" },
  },
  "@page": { size: "A4 landscape", margin: "10mm" },
  ".on-paper": {
    ".sheet": { maxWidth: "none", padding: 0, width: DRAWN_PX },
    ".row-of-2": { gridTemplateColumns: "repeat(2, minmax(0, 1fr))" },
    ".row-of-3": { gridTemplateColumns: "repeat(3, minmax(0, 1fr))" },
    // Nobody turns the pages of a legend on paper: one key for all charts stands above them.
    ".key": { display: "flex" },
    "[role=img]": { height: `calc(${String(HEIGHT)} * var(--height)) !important` },
  },
  "@media print": {
    ":root": { colorScheme: "light" },
    body: { WebkitPrintColorAdjust: "exact", printColorAdjust: "exact", background: "#fff" },
    ".MuiPaper-root": { boxShadow: "none !important", border: "1px solid #e5e7eb", breakInside: "avoid" },
    ".MuiTableContainer-root": { overflow: "visible !important" },
    "td, th": { fontSize: "7.5pt !important", padding: "1.5px 4px !important" },
    "th span": { fontSize: "7pt !important" },
    ".scale, .key": { fontSize: "6.5pt !important" },
    // A table of half a sheet may go on on the next one; one beside another one would be drawn over what follows.
    ".MuiTableContainer-root:has(tr:nth-of-type(24)):not(.row-of-2 *)": { breakInside: "auto" },
    tr: { breakInside: "avoid" },
    h2: { breakAfter: "avoid" },
    "section > div": { gap: "8px !important" },
    ".new-sheet": { breakBefore: "page" },
    ".on-paper .sheet": { width: "auto" },
    ".on-paper [role=img], [role=img] > div": { width: "100% !important", height: "auto !important" },
    "[role=img] svg": { position: "static !important", width: "100% !important", height: "auto !important" },
  },
} as const;

/** Draws all charts anew for paper, or again for the screen; those of a narrow window would have tiny words on a sheet. */
export function drawFor(medium: "paper" | "screen") {
  const onPaper = medium === "paper";
  document.documentElement.classList.toggle("on-paper", onPaper);
  for (const element of document.querySelectorAll<HTMLElement>("[role=img]")) {
    redraw(element, { toolbox: { show: !onPaper }, ...(element.closest(".keyed") && { legend: { show: !onPaper } }) });
  }
}
