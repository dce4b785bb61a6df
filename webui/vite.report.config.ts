/** Builds the report's page: one file that holds everything, with a place for the numbers of a run. */

import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const CANVAS = "/charts/echarts";
const SVG = fileURLToPath(new URL("./src/report/echarts.ts", import.meta.url));

/** Charts of a report are drawn as SVG: they stay sharp on paper, and their texts can be searched. */
function chartsAsSvg(): Plugin {
  return {
    name: "charts-as-svg",
    enforce: "pre",
    resolveId(source, importer) {
      return source === "./echarts" && importer?.includes("/charts/") ? SVG : null;
    },
    buildEnd() {
      for (const id of this.getModuleIds()) {
        if (id.includes(CANVAS)) throw new Error(`${id} has come into the report`);
      }
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [chartsAsSvg(), viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    outDir: "../llm_locust/webui",
    emptyOutDir: false,
    chunkSizeWarningLimit: 3000,
    reportCompressedSize: false,
    sourcemap: false,
    rollupOptions: {
      input: fileURLToPath(new URL("./report.html", import.meta.url)),
      output: { codeSplitting: false },
      // Directives for server components mean nothing in a page.
      onwarn: (warning, warn) => {
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
      },
    },
  },
});
