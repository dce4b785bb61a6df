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

/** A table with more columns than this has no room for air between them. */
const MOST_ROOMY = 14;
const ROOMY = { px: 1.25, "&:first-of-type": { pl: 1.5 } };
const TIGHT = { px: { xs: 0.4, xl: 0.6 }, "&:first-of-type": { pl: 1.5 } };
const HEAD = { fontWeight: 600, lineHeight: 1.25, whiteSpace: "nowrap", verticalAlign: "bottom", py: 0.5, fontSize: { xs: 12.5, xl: 13 } };
const CELL = { whiteSpace: "nowrap", py: 0.5, fontSize: { xs: 12, xl: 12.5 }, fontVariantNumeric: "tabular-nums" };

export function Plain<Row>({ label, columns, rows, keyOf, dimmed, marked, empty }: PlainProps<Row>) {
  const air = columns.length > MOST_ROOMY ? TIGHT : ROOMY;
  const hasUnits = columns.some(({ unit }) => unit);
  /** Words stand apart from a number before them. */
  const sideOf = ({ left }: Column<Row>, place: number) => ({
    ...air,
    ...(left && place > 0 && !columns[place - 1]?.left && { pl: 3 }),
  });
  return (
    <TableContainer component={Paper} sx={{ overflowX: "auto" }}>
      <Table aria-label={label} size="small" sx={{ width: columns.length > MOST_ROOMY ? "100%" : "auto" }}>
        <TableHead>
          <TableRow>
            {columns.map((column, place) => (
              <TableCell align={column.left ? "left" : "right"} key={place} sx={{ ...HEAD, ...sideOf(column, place) }}>
                <Tooltip title={column.help ?? ""}>
                  <span>
                    {column.title || "\u00a0"}
                    {hasUnits && (
                      <>
                        <br />
                        <span style={{ fontSize: 12, fontWeight: 400, opacity: 0.75 }}>{column.unit || "\u00a0"}</span>
                      </>
                    )}
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
                "& td": dimmed?.(row) ? { color: "text.secondary" } : {},
                ...(marked?.(row) ? { backgroundColor: "rgba(21, 128, 61, 0.14)" } : {}),
                "&:last-child td": { borderBottom: 0 },
              }}
            >
              {columns.map((column, at) => (
                <TableCell align={column.left ? "left" : "right"} key={at} sx={{ ...CELL, ...sideOf(column, at) }}>
                  {column.cell(row)}
                </TableCell>
              ))}
            </TableRow>
          ))}
          {rows.length === 0 && (
            <TableRow>
              <TableCell colSpan={columns.length} sx={{ ...CELL, ...air, color: "text.secondary" }}>
                {empty ?? "Nothing yet."}
              </TableCell>
            </TableRow>
          )}
        </TableBody>
      </Table>
    </TableContainer>
  );
}
