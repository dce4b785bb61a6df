/** Asks the master every so many ms, never twice at once; returns what ends it. */
export function askEvery(
  ms: number,
  ask: (signal: AbortSignal) => Promise<void>,
  failed: (error: unknown) => void,
): () => void {
  let timer = 0;
  const abort = new AbortController();
  const refresh = async () => {
    try {
      await ask(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted) failed(error);
    }
    if (!abort.signal.aborted) timer = window.setTimeout(() => void refresh(), ms);
  };
  void refresh();
  return () => {
    abort.abort();
    window.clearTimeout(timer);
  };
}
