/** A table in Locust's look that keeps its head and scrolls sideways where it is wider than the page. */

import { Paper, Table, TableBody, TableCell, TableContainer, TableHead, TableRow, Tooltip } from "@mui/material";
import type { ReactNode } from "react";

export interface Column<Row> {
  title: string;
  /** Said once over neighbours that have the same. */
  group?: string;
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
const TITLE = { fontWeight: 600, lineHeight: 1.25, whiteSpace: "nowrap", verticalAlign: "bottom", py: 0.5, fontSize: { xs: 12.5, xl: 13 } };
const UNIT = { fontSize: 12, fontWeight: 400, opacity: 0.75 };
/** A line under a heading shows how far it reaches. */
const GROUP = { borderBottom: 0, pb: 0, "& > span": { borderBottom: "1px solid", borderColor: "divider", display: "block" } };
const CELL = { whiteSpace: "nowrap", py: 0.5, fontSize: { xs: 12, xl: 12.5 }, fontVariantNumeric: "tabular-nums" };

interface HeadProps<Row> {
  columns: Column<Row>[];
  air: object;
  sideOf: (column: Column<Row>, place: number) => object;
}

/** The head: one line, or two where neighbours have a heading in common. */
function Head<Row>({ columns, air, sideOf }: HeadProps<Row>) {
  const hasUnits = columns.some(({ unit }) => unit);
  const isGrouped = columns.some(({ group }) => group);
  const own = (column: Column<Row>, place: number, rowSpan: number) => (
    <TableCell align={column.left ? "left" : "right"} key={place} rowSpan={rowSpan} sx={{ ...TITLE, ...sideOf(column, place) }}>
      <Tooltip title={column.help ?? ""}>
        <span>
          {column.group ? <span style={UNIT}>{column.title}</span> : column.title || "\u00a0"}
          {hasUnits && !column.group && (
            <>
              <br />
              <span style={UNIT}>{column.unit || "\u00a0"}</span>
            </>
          )}
        </span>
      </Tooltip>
    </TableCell>
  );
  const first = columns.flatMap((column, place) => {
    if (!column.group) return [own(column, place, isGrouped ? 2 : 1)];
    if (columns[place - 1]?.group === column.group) return [];
    const rest = columns.slice(place).findIndex(({ group }) => group !== column.group);
    return [
      <TableCell align="center" colSpan={rest < 0 ? columns.length - place : rest} key={place} sx={{ ...TITLE, ...air, ...GROUP }}>
        <span>{column.group}</span>
      </TableCell>,
    ];
  });
  return (
    <TableHead>
      <TableRow>{first}</TableRow>
      {isGrouped && <TableRow>{columns.map((column, place) => (column.group ? own(column, place, 1) : null))}</TableRow>}
    </TableHead>
  );
}

export function Plain<Row>({ label, columns, rows, keyOf, dimmed, marked, empty }: PlainProps<Row>) {
  const air = columns.length > MOST_ROOMY ? TIGHT : ROOMY;
  /** Words stand apart from a number before them. */
  const sideOf = ({ left }: Column<Row>, place: number) => ({
    ...air,
    ...(left && place > 0 && !columns[place - 1]?.left && { pl: 3 }),
  });
  return (
    <TableContainer component={Paper} sx={{ overflowX: "auto", maxWidth: "100%", width: columns.length > MOST_ROOMY ? "100%" : "fit-content" }}>
      <Table aria-label={label} size="small" sx={{ width: columns.length > MOST_ROOMY ? "100%" : "auto" }}>
        <Head air={air} columns={columns} sideOf={sideOf} />
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
