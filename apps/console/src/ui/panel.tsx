import { QueryErrorResetBoundary } from '@tanstack/react-query';
import { Component, type ReactNode } from 'react';
import { cn } from './cn.js';
import { ErrorState } from './states.js';

type BoundaryProps = { onReset: () => void; children: ReactNode };

class Boundary extends Component<BoundaryProps, { error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <ErrorState
        error={this.state.error}
        onRetry={() => {
          this.props.onReset();
          this.setState({ error: null });
        }}
      />
    );
  }
}

/** Keeps a fault in one panel from taking the page with it. */
export function PanelBoundary({ children }: { children: ReactNode }) {
  return (
    <QueryErrorResetBoundary>
      {({ reset }) => <Boundary onReset={reset}>{children}</Boundary>}
    </QueryErrorResetBoundary>
  );
}

/** A card with a heading, controls at its right, and its own error boundary. */
export function Panel({
  title,
  note,
  actions,
  className,
  flush = false,
  children,
  ...rest
}: {
  title?: string;
  note?: ReactNode;
  actions?: ReactNode;
  className?: string;
  /** Content goes to the edges: tables and lists. */
  flush?: boolean;
  children: ReactNode;
  'data-testid'?: string;
}) {
  return (
    <section
      className={cn(
        'flex min-w-0 flex-col overflow-hidden rounded-lg border border-line bg-surface shadow-card',
        className,
      )}
      {...(title ? { 'aria-label': title } : {})}
      {...rest}
    >
      {(title || actions) && (
        <header className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line px-4 py-1.5">
          {title && <h2 className="text-[0.8125rem] font-semibold">{title}</h2>}
          {note && <span className="text-xs text-ink-3">{note}</span>}
          {actions && <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>}
        </header>
      )}
      <div className={cn('min-h-0 flex-1', !flush && 'p-4')}>
        <PanelBoundary>{children}</PanelBoundary>
      </div>
    </section>
  );
}

/** The page's heading with its filters and actions. */
export function PageHeader({
  title,
  note,
  actions,
}: {
  title: string;
  note?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <h1 className="text-lg font-semibold tracking-tight">{title}</h1>
      {note && <span className="text-xs text-ink-3">{note}</span>}
      {actions && <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>}
    </div>
  );
}
