import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const CUSTOM_PARAMETERS = fileURLToPath(new URL("./src/form/CustomParameters.tsx", import.meta.url));
const REGION =
  /\/\/#region src\/components\/SwarmForm\/SwarmCustomParameters\.tsx\nfunction (\w+)\([\s\S]*?\n\}\n\/\/#endregion/;

const STOP = '({ url: "stop" })';
const RESET = '({ url: "stats/reset" })';

/** Returns the request with the method that the running Locust takes: GET before 2.47, POST from then on. */
const withMethod = (request: string) => request.replace(" })", ", method: window.templateArgs?.llm?.method })");

/**
 * Puts our grouped fields in the place of Locust's flat list of custom parameters, in each of its three forms (start,
 * new, edit). The library (2.43.4, pinned) offers no way to render them; when a newer one looks different the build
 * fails here.
 */
function adaptedLocustUi(): Plugin {
  return {
    name: "adapted-locust-ui",
    enforce: "pre",
    transform(code, id) {
      if (!id.endsWith("locust-ui/lib/webui.js")) return null;
      const found = REGION.exec(code);
      if (!found) throw new Error("locust-ui has no SwarmCustomParameters of the known form");
      if (!code.includes(STOP) || !code.includes(RESET)) throw new Error("locust-ui stops and resets in another way");
      const ours = `import { CustomParameters as ${found[1]} } from ${JSON.stringify(CUSTOM_PARAMETERS)};`;
      const changed = code
        .replace(REGION, () => ours)
        .replace(STOP, () => withMethod(STOP))
        .replace(RESET, () => withMethod(RESET));
      return { code: changed, map: null };
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [adaptedLocustUi()],
  build: {
    outDir: "../llm_locust/webui",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 3000,
    reportCompressedSize: false,
    sourcemap: false,
    rollupOptions: {
      output: { codeSplitting: false },
      // Directives for server components mean nothing in a page.
      onwarn: (warning, warn) => {
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
      },
    },
  },
  test: { environment: "jsdom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
