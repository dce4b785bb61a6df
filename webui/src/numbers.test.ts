import { expect, test } from "vitest";

import { bytes, count, percent, seconds, span, threeDigits } from "./numbers";

test.each([
  [0, "0"], [0.4021, "0.402"], [0.99951, "1.00"], [5.288, "5.29"], [52.88, "52.9"], [99.95, "100"], [5288.2, "5,288"],
  [4.125, "4.12"], [0.0625, "0.062"],
  [null, "–"], [Number.NaN, "–"], ["text", "–"],
])("%s has about three digits: %s", (value, shown) => {
  expect(threeDigits(value)).toBe(shown);
});

test("counts, seconds and shares", () => {
  expect([count(12_345), count(null), seconds(18_400), percent(0.0539)]).toEqual(["12,345", "–", "18.4", "5.39 %"]);
});

test.each([[44.6, "45s"], [200, "3m20s"], [7500, "2h05m"], [-1, "0s"]])("%s s is %s", (given, shown) => {
  expect(span(given)).toBe(shown);
});

test.each([[90, "90 B"], [94_618, "92.4 KB"], [3_000_000, "2.86 MB"], [5e9, "4.66 GB"]])("%s bytes are %s", (given, shown) => {
  expect(bytes(given)).toBe(shown);
});
