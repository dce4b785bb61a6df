/** How the page becomes paper: A4 on its side, two charts a row, nothing cut by the end of a sheet. */

export const PAPER = {
  "[role=img] svg": { maxWidth: "100%" },
  "@media screen and (max-width: 1500px)": {
    "table[aria-label=Stages] :is(td, th)": { fontSize: "12px !important", padding: "4px 3px !important" },
  },
  "@page": { size: "A4 landscape", margin: "10mm" },
  "@media print": {
    ":root": { colorScheme: "light" },
    body: { WebkitPrintColorAdjust: "exact", printColorAdjust: "exact", background: "#fff" },
    ".MuiPaper-root": { boxShadow: "none !important", border: "1px solid #e5e7eb", breakInside: "avoid" },
    ".MuiTableContainer-root": { overflow: "visible !important", breakInside: "auto" },
    "td, th": { fontSize: "7.5pt !important", padding: "1.5px 4px !important" },
    "th span": { fontSize: "7pt !important" },
    tr: { breakInside: "avoid" },
    h2: { breakAfter: "avoid" },
    "section > div": { gap: "8px !important" },
    ".row-of-2": { gridTemplateColumns: "repeat(2, minmax(0, 1fr)) !important" },
    ".row-of-3": { gridTemplateColumns: "repeat(3, minmax(0, 1fr)) !important" },
    ".new-sheet": { breakBefore: "page" },
    "[role=img], [role=img] > div": { width: "100% !important", height: "auto !important" },
    "[role=img] svg": { position: "static !important", width: "100% !important", height: "auto !important" },
    ".sheet": { maxWidth: "none !important", padding: "0 !important" },
  },
} as const;
