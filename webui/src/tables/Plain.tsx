/** A table in Locust's look that keeps its head and scrolls sideways where it is wider than the page. */

import { Paper, Table, TableBody, TableCell, TableContainer, TableHead, TableRow, Tooltip } from "@mui/material";
import type { ReactNode } from "react";

export interface Column<Row> {
  title: string;
  unit?: string;
  /** Said when the pointer rests on the title. */
  help?: string | undefined;
  cell: (row: Row) => ReactNode;
  left?: boolean;
}

interface PlainProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row, place: number) => string;
  dimmed?: (row: Row) => boolean;
  marked?: (row: Row) => boolean;
  empty?: string;
}

const HEAD = { fontWeight: 600, lineHeight: 1.25, whiteSpace: "nowrap", verticalAlign: "bottom", px: { xs: 0.4, xl: 0.6 }, py: 0.5, fontSize: { xs: 12.5, xl: 13 }, "&:first-of-type": { pl: 1.5 } };
const CELL = { whiteSpace: "nowrap", px: { xs: 0.4, xl: 0.6 }, py: 0.5, fontSize: { xs: 12, xl: 12.5 }, fontVariantNumeric: "tabular-nums", "&:first-of-type": { pl: 1.5 } };

export function Plain<Row>({ label, columns, rows, keyOf, dimmed, marked, empty }: PlainProps<Row>) {
  return (
    <TableContainer component={Paper} sx={{ overflowX: "auto" }}>
      <Table aria-label={label} size="small">
        <TableHead>
          <TableRow>
            {columns.map(({ title, unit, help, left }, column) => (
              <TableCell align={left ? "left" : "right"} key={column} sx={HEAD}>
                <Tooltip title={help ?? ""}>
                  <span>
                    {title || "\u00a0"}
                    <br />
                    <span style={{ fontSize: 12, fontWeight: 400, opacity: 0.75 }}>{unit || "\u00a0"}</span>
                  </span>
                </Tooltip>
              </TableCell>
            ))}
          </TableRow>
        </TableHead>
        <TableBody>
          {rows.map((row, place) => (
            <TableRow
              data-dimmed={dimmed?.(row) ? "yes" : undefined}
              data-marked={marked?.(row) ? "yes" : undefined}
              key={keyOf(row, place)}
              sx={{
                "& td": dimmed?.(row) ? { color: "text.disabled" } : {},
                ...(marked?.(row) ? { backgroundColor: "rgba(21, 128, 61, 0.14)" } : {}),
                "&:last-child td": { borderBottom: 0 },
              }}
            >
              {columns.map(({ cell, left }, column) => (
                <TableCell align={left ? "left" : "right"} key={column} sx={CELL}>
                  {cell(row)}
                </TableCell>
              ))}
            </TableRow>
          ))}
          {rows.length === 0 && (
            <TableRow>
              <TableCell colSpan={columns.length} sx={{ ...CELL, color: "text.secondary" }}>
                {empty ?? "Nothing yet."}
              </TableCell>
            </TableRow>
          )}
        </TableBody>
      </Table>
    </TableContainer>
  );
}
