/** The files of the run, as far as they are written. */

import { Link, Typography } from "@mui/material";
import { useEffect, useState } from "react";

import { bytes } from "../numbers";

interface File {
  name: string;
  bytes: number;
}

const REFRESH_MS = 5000;
/** Written last, some seconds after the end. */
const LAST = "report.html";

export function Downloads({ state }: { state: string }) {
  const [files, setFiles] = useState<File[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const refresh = async () => {
      let known: File[] = [];
      try {
        const response = await fetch("llm/files", { signal: abort.signal });
        if (response.ok) setFiles((known = (await response.json()) as File[]));
      } catch {
        if (abort.signal.aborted) return; // the refresh of the page tells that the master does not answer
      }
      if (!known.some(({ name }) => name === LAST)) timer = window.setTimeout(() => void refresh(), REFRESH_MS);
    };
    void refresh();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [state]);
  if (files.length === 0) return <Typography color="text.secondary">No file yet.</Typography>;
  return (
    <Typography component="div" sx={{ display: "flex", flexWrap: "wrap", columnGap: 3, rowGap: 0.5 }}>
      {files.map((file) => (
        <Link download href={`llm/files/${file.name}`} key={file.name}>
          {file.name}
          <Typography color="text.secondary" component="span" sx={{ ml: 0.5 }} variant="body2">
            {bytes(file.bytes)}
          </Typography>
        </Link>
      ))}
    </Typography>
  );
}
