/** What is thought of each stage: its objectives, and whether its measurement can be trusted. */

import type { Now, SloClause, Verdict } from "../live/types";
import { count, threeDigits } from "../numbers";
import { Validity } from "../tables/Mark";
import { Plain } from "../tables/Plain";

interface Judged extends SloClause {
  stage: string;
}

const got = ({ got: value, unit }: SloClause) => {
  if (value === null) return "no sample";
  return unit === "ratio" ? `${threeDigits(value * 100)} %` : `${threeDigits(value)} ${unit}`;
};

/** A reason a line, each wrapped where the page is narrow. */
const Lines = ({ of }: { of: string[] }) => (
  <div style={{ whiteSpace: "normal", minWidth: of.length ? "28ch" : 0 }}>{of.length ? of.map((line) => <div key={line}>{line}</div>) : "–"}</div>
);

export function SloTable({ now }: { now: Now }) {
  const judged = now.rows.flatMap(({ stage, slo }): Judged[] => slo.map((clause) => ({ stage, ...clause })));
  return (
    <Plain
      columns={[
        { title: "Stage", left: true, cell: ({ stage }) => stage },
        { title: "Objective", left: true, cell: ({ clause }) => clause },
        { title: "Measured", cell: got },
        { title: "Samples", cell: ({ n }) => count(n) },
        { title: "Verdict", left: true, cell: ({ passed }) => (passed ? "✓ met" : "✕ MISSED") },
      ]}
      dimmed={({ passed }) => !passed}
      empty="No SLO was given (--llm-slo), so no stage is called good or bad."
      keyOf={({ stage, clause }) => `${stage} ${clause}`}
      label="Objectives"
      rows={judged}
    />
  );
}

export function ValidityTable({ validity }: { validity: Record<string, Verdict> }) {
  const { run, ...stages } = validity;
  const rows = [...(run ? [["whole run", run] as const] : []), ...Object.entries(stages)];
  return (
    <Plain
      columns={[
        { title: "Stage", left: true, cell: ([stage]) => stage },
        { title: "Measurement", left: true, cell: ([, verdict]) => <Validity verdict={{ ...verdict, findings: [] }} /> },
        { title: "Reasons", left: true, cell: ([, { reasons }]) => <Lines of={reasons} /> },
        { title: "Findings about the server", left: true, cell: ([, { findings }]) => <Lines of={findings} /> },
      ]}
      empty="Nothing has been judged."
      keyOf={([stage]) => stage}
      label="Validity"
      rows={rows}
    />
  );
}
