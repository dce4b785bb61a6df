/** What became of the requests: outcomes and finish reasons by stage, and a sample of each kind of failure. */

import type { Failure, Now, StageRow } from "../live/types";
import { count, percent } from "../numbers";
import { Plain, type Column } from "./Plain";
import { reader } from "./rows";

export function OutcomeTable({ now }: { now: Now }) {
  const stages = now.rows.filter(({ name }) => name === "all");
  const rows: StageRow[] = stages.length > 1 ? [...stages, now.total] : stages;
  const read = reader(now.columns);
  const outcomes = [...new Set(rows.flatMap((row) => Object.keys(row.outcomes)))];
  outcomes.sort((a, b) => Number(b === "ok") - Number(a === "ok"));
  const columns: Column<StageRow>[] = [
    { title: "Stage", left: true, cell: (row) => (row === now.total ? "whole run" : row.stage) },
    ...outcomes.map((outcome): Column<StageRow> => ({
      title: outcome,
      unit: "req",
      cell: (row) => count(row.outcomes[outcome] ?? 0),
    })),
    { title: "Failed", unit: "share", cell: (row) => percent(read(row, "error_ratio")) },
    { title: "Finish reasons", left: true, cell: (row) => read(row, "finish_reasons") ?? "–" },
  ];
  return (
    <Plain
      columns={columns}
      empty="No request of a measured window has ended yet."
      keyOf={(row) => row.stage}
      label="Outcomes"
      rows={rows}
    />
  );
}

export function FailureTable({ failures }: { failures: Failure[] }) {
  if (failures.length === 0) return null;
  return (
    <Plain
      columns={[
        { title: "Failure", left: true, cell: ({ outcome }) => outcome },
        { title: "Status", cell: ({ http_status }) => http_status ?? "–" },
        { title: "Requests", cell: (failure) => count(failure.count) },
        { title: "First message", left: true, cell: ({ sample }) => <span style={{ whiteSpace: "normal" }}>{sample || "–"}</span> },
      ]}
      keyOf={({ outcome, http_status }) => `${outcome} ${String(http_status)}`}
      label="Failures"
      rows={failures}
    />
  );
}
