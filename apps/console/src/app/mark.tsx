/** The sign of the product: water that flows over a weir. */
export function Mark({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" aria-hidden className={className}>
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <rect x="6" y="16" width="8" height="10" rx="1.5" className="fill-on-accent" opacity=".45" />
      <path
        d="M6 10h8.5c2.8 0 3.8 1.4 3.8 4v6c0 2.6 1 4 3.7 4H26"
        fill="none"
        strokeLinecap="round"
        strokeWidth="3"
        className="stroke-on-accent"
      />
    </svg>
  );
}
