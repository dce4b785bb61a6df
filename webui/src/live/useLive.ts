/** Asks the master every two seconds while the page is seen: one small request a refresh. */

import { useEffect, useState } from "react";

import { askEvery } from "./ask";
import { join, NOTHING, type Live } from "./history";
import type { Answer } from "./types";

const REFRESH_MS = 2000;

export interface LiveState extends Live {
  /** Why the last refresh brought nothing; the numbers shown are older then. */
  problem: string | null;
  /** Whether the master has answered at all. */
  asked: boolean;
}

export function useLive(): LiveState {
  const [state, setState] = useState<LiveState>({ ...NOTHING, problem: null, asked: false });
  useEffect(() => {
    let live: Live = NOTHING;
    const ask = async (signal: AbortSignal) => {
      const response = await fetch(`llm/live?token=${encodeURIComponent(live.token)}`, { signal });
      if (!response.ok) throw new Error(`the master answered ${String(response.status)}`);
      const answer = (await response.json()) as Answer;
      const isNew = answer.now !== null || answer.whole;
      live = join(live, answer);
      setState((before) =>
        isNew || before.problem !== null || !before.asked ? { ...live, problem: null, asked: true } : before,
      );
    };
    return askEvery(REFRESH_MS, ask, (error) => {
      const problem = error instanceof Error ? error.message : String(error);
      setState((before) => ({ ...before, problem, asked: true }));
    });
  }, []);
  return state;
}
