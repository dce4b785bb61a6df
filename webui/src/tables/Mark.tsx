/** Validity and SLO in one word, with the reasons at the pointer; a shape beside the colour for every kind of sight. */

import { Box, Chip, Tooltip } from "@mui/material";

import { threeDigits } from "../numbers";
import type { SloClause, Verdict } from "../live/types";

const WORDS = {
  VALID: { sign: "✓", tone: "success" },
  SUSPECT: { sign: "?", tone: "warning" },
  INVALID: { sign: "✕", tone: "error" },
} as const;

export function Reasons({ lines }: { lines: string[] }) {
  return (
    <Box sx={{ whiteSpace: "pre-line" }}>{lines.length ? lines.map((line) => `• ${line}`).join("\n") : "No objection."}</Box>
  );
}

export function Validity({ verdict }: { verdict: Verdict | null }) {
  if (!verdict) return <>–</>;
  const { sign, tone } = WORDS[verdict.validity];
  return (
    <Tooltip title={<Reasons lines={[...verdict.reasons, ...verdict.findings]} />}>
      <Box component="span" sx={{ color: ({ palette }) => palette[tone][palette.mode === "dark" ? "main" : "dark"], fontWeight: 600 }}>
        {sign} {verdict.validity}
        {verdict.findings.length > 0 && (
          <Box component="span" sx={{ color: "text.secondary", fontWeight: 400 }}>
            {" "}
            +{verdict.findings.length}
          </Box>
        )}
      </Box>
    </Tooltip>
  );
}

const told = ({ clause, got, unit, passed }: SloClause) =>
  `${passed ? "✓" : "✕"} ${clause}: ${got === null ? "no sample" : `${threeDigits(got)} ${unit === "ratio" ? "" : unit}`}`;

/** "ttft p99 < 2s" as "ttft p99", in one line. */
const short = (clause: string) => (clause.split(/[<>(]/)[0] ?? "").trim().replaceAll(" ", "\u00a0");

export function Slo({ clauses, best }: { clauses: SloClause[]; best: boolean }) {
  if (clauses.length === 0) return <>–</>;
  const missed = clauses.filter(({ passed }) => !passed);
  return (
    <Tooltip title={<Box sx={{ whiteSpace: "pre-line" }}>{clauses.map(told).join("\n")}</Box>}>
      {/* Several missed objectives take two lines rather than a column as wide as all of them. */}
      <Box component="span" sx={{ display: "inline-block", maxWidth: { xs: 92, xl: 150 }, whiteSpace: "normal", lineHeight: 1.2 }}>
        {best ? (
          <Chip color="primary" label="best" size="small" sx={{ height: 20 }} />
        ) : missed.length ? (
          `✕\u00a0${missed.map(({ clause }) => short(clause)).join(", ")}`
        ) : (
          "✓ met"
        )}
      </Box>
    </Tooltip>
  );
}
