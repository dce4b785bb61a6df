import type { IRootState } from "locust-ui";
import { useSelector } from "react-redux";

export const useDark = () => useSelector(({ theme }: IRootState) => theme.isDarkMode);
