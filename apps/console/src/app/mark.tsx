/** The sign of the product: water that flows over a weir. */
export function Mark({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" aria-hidden className={className}>
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <g fill="none" strokeLinecap="round" strokeWidth="2.6" className="stroke-on-accent">
        <path d="M7 9v8.5c0 1 1 1.5 2 1.5h4c1 0 2 .5 2 1.5V23" />
        <path
          d="M18 23c1.3 0 1.3-1.2 2.6-1.2s1.3 1.2 2.6 1.2 1.3-1.2 2.6-1.2M21 9v7"
          opacity=".6"
        />
      </g>
    </svg>
  );
}
