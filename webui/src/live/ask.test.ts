import { expect, test, vi } from "vitest";

import { askEvery } from "./ask";

test("the master is asked again after each answer and after a failure, and no more after the end", async () => {
  vi.useFakeTimers();
  const failures: unknown[] = [];
  let asked = 0;
  const end = askEvery(
    1000,
    async () => {
      asked += 1;
      await new Promise((answered) => setTimeout(answered, 5000));
      if (asked === 2) throw new Error("gone");
    },
    (error) => failures.push(error),
  );
  await vi.advanceTimersByTimeAsync(5999);
  expect(asked).toBe(1);
  await vi.advanceTimersByTimeAsync(1 + 6000);
  expect([asked, failures]).toEqual([3, [new Error("gone")]]);
  end();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([asked, failures.length]).toEqual([3, 1]);
  vi.useRealTimers();
});
