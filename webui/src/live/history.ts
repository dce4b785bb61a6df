/** Joins what changed with what the page has: a changed point replaces those that lie within it. */

import type { Answer, Cell, History, Now } from "./types";

export interface Live {
  token: string;
  now: Now | null;
  history: History | null;
}

export const NOTHING: Live = { token: "", now: null, history: null };

const from = (point: Cell[]) => point[0] as number;
const until = (point: Cell[]) => point[1] as number;

export function joinPoints(known: Cell[][], changed: Cell[][]): Cell[][] {
  if (changed.length === 0) return known;
  const kept = known.filter(
    (point) => !changed.some((newer) => from(point) < until(newer) && until(point) > from(newer)),
  );
  return [...kept, ...changed].sort((a, b) => from(a) - from(b));
}

export function join(live: Live, answer: Answer): Live {
  if (answer.now === null) {
    return answer.whole ? { ...NOTHING, token: answer.token } : { ...live, token: answer.token };
  }
  const fresh = answer.history ?? null;
  const known = answer.whole || live.history === null ? [] : live.history.points;
  const history = fresh && { ...fresh, points: joinPoints(known, fresh.points) };
  return { token: answer.token, now: answer.now, history };
}

/** A column of the history as [x in ms, y] pairs at the middle of each point. */
export function series(history: History, column: string): [number, number | null][] {
  const place = history.columns.indexOf(column);
  return history.points.map((point) => [
    (from(point) + until(point)) * 500,
    typeof point[place] === "number" ? point[place] : null,
  ]);
}

export const hasValues = (points: [number, number | null][]) => points.some(([, value]) => value !== null);
