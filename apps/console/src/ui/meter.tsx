import { cn } from './cn.js';

/** Where a bar turns: from here on it is near, and at the limit it is full. In basis points. */
const nearPoints = 8_000;
const fullPoints = 10_000;

export type MeterTone = 'calm' | 'near' | 'full';

export function meterTone(points: number): MeterTone {
  if (points >= fullPoints) return 'full';
  return points >= nearPoints ? 'near' : 'calm';
}

const fills: Readonly<Record<MeterTone, string>> = {
  calm: 'var(--accent)',
  near: 'var(--warn-fill)',
  full: 'var(--bad-fill)',
};

/**
 * A bar of one limit: used is solid, reserved is hatched, the track is the limit. Shares are basis points of the limit.
 * The text says all that the bar shows.
 */
export function Meter({
  label,
  text,
  share,
  blocked = false,
  thick = false,
  className,
}: {
  label: string;
  text: string;
  /** null: not known, which is not the same as nothing. */
  share: { readonly used: number; readonly reserved: number } | null;
  blocked?: boolean;
  thick?: boolean;
  className?: string;
}) {
  const { used, reserved } = share ?? { used: 0, reserved: 0 };
  const usedShare = Math.min(used, fullPoints);
  const reservedShare = Math.min(reserved, fullPoints - usedShare);
  const fill = blocked ? fills.full : fills[meterTone(used + reserved)];
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.floor(usedShare / 100)}
      aria-valuetext={text}
      className={cn(
        'relative flex w-full overflow-hidden rounded-full bg-sunken ring-1 ring-line ring-inset',
        thick ? 'h-2.5' : 'h-1.5',
        share === null && !blocked && 'bg-transparent ring-line-strong',
        className,
      )}
    >
      {blocked ? (
        <span
          className="hatched h-full w-full"
          style={{ '--hatch': fill } as React.CSSProperties}
        />
      ) : (
        <>
          <span
            className="h-full transition-[width] duration-500"
            style={{
              width: `${usedShare / 100}%`,
              minWidth: used > 0 ? 2 : 0,
              backgroundColor: fill,
            }}
          />
          <span
            className="hatched h-full transition-[width] duration-500"
            style={
              {
                width: `${reservedShare / 100}%`,
                minWidth: reserved > 0 ? 3 : 0,
                '--hatch': fill,
              } as React.CSSProperties
            }
          />
        </>
      )}
    </div>
  );
}

/** How far a job is. `done` of `total`; without a total it only says that it moves. */
export function ProgressBar({
  label,
  text,
  percent,
}: {
  label: string;
  text: string;
  percent: number | null;
}) {
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuetext={text}
      {...(percent === null ? {} : { 'aria-valuenow': percent })}
      className="h-1.5 w-full overflow-hidden rounded-full bg-sunken ring-1 ring-line ring-inset"
    >
      <span
        className={cn(
          'block h-full rounded-full bg-accent transition-[width] duration-300',
          percent === null && 'w-1/3 animate-pulse',
        )}
        style={percent === null ? {} : { width: `${percent}%` }}
      />
    </div>
  );
}
