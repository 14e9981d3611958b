import { useVirtualizer } from '@tanstack/react-virtual';
import { Building2, ChevronRight, Landmark, User, UserCog } from 'lucide-react';
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { useFormat } from '../../format/use-format.js';
import { percentText } from '../../format/decimal.js';
import { Badge } from '../../ui/badge.js';
import { cn } from '../../ui/cn.js';
import { Count, Money } from '../../ui/figures.js';
import { meterTone } from '../../ui/meter.js';
import { State } from '../../ui/states.js';
import { useIsNarrow } from '../../ui/use-media.js';
import { LimitMeter, LimitPercent } from '../limits/limit-meter.js';
import { barPercent, usedText } from './limit-text.js';
import { pressure, visibleRows, type Tree, type TreeRow } from './prepare-tree.js';

const rowPx = { wide: 46, narrow: 68 } as const;
const indentPx = 18;
/** How many rows are left above the address's node when it is brought into sight. */
const leadRows = 4;

/** The columns of a row and of the heading; the widths follow the container, not the window. */
const grid =
  'grid items-center gap-x-5 px-4 grid-cols-1 sm:grid-cols-[minmax(0,1fr)_minmax(11rem,46%)] @4xl:grid-cols-[minmax(12rem,1fr)_minmax(14rem,19rem)_7.5rem_7.5rem_6rem] @6xl:grid-cols-[minmax(12rem,1fr)_minmax(14rem,20rem)_7.5rem_7.5rem_5.5rem_4rem_5rem]';
const from4xl = 'hidden @4xl:block text-right';
const from6xl = 'hidden @6xl:block text-right';

const levelIcons = { enterprise: Landmark, department: Building2, user: User, key: UserCog };

export function OrganisationTree({
  tree,
  search,
  selected,
  onSelect,
}: {
  tree: Tree;
  search: string;
  selected: string | undefined;
  onSelect: (id: string) => void;
}) {
  const { t } = useTranslation();
  const base = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const heightPx = rowPx[useIsNarrow() ? 'narrow' : 'wide'];
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [active, setActive] = useState<string | null>(null);
  const rows = visibleRows(tree, toggled, search);
  const activeId = active ?? selected ?? rows[0]?.entry.node.id;
  const activeIndex = Math.max(
    0,
    rows.findIndex(({ entry }) => entry.node.id === activeId),
  );
  // eslint-disable-next-line react-hooks/incompatible-library -- no compiler memoises this component
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => heightPx,
    overscan: 10,
    initialRect: { width: 800, height: 800 },
    initialOffset: () => Math.max(0, (activeIndex - leadRows) * heightPx),
  });

  // External system: the list's scroll position. What a search finds is read from its beginning.
  useEffect(() => {
    if (search !== '') scroller.current?.scrollTo({ top: 0 });
  }, [search]);

  const toggle = (row: TreeRow, open: boolean) =>
    setToggled((before) => new Map(before).set(row.entry.node.id, open));
  const goTo = (index: number) => {
    const bounded = Math.max(0, Math.min(rows.length - 1, index));
    const target = rows[bounded];
    if (!target) return;
    setActive(target.entry.node.id);
    virtualizer.scrollToIndex(bounded);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[activeIndex];
    if (!row || event.metaKey || event.ctrlKey || event.altKey) return;
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => goTo(activeIndex + 1),
      ArrowUp: () => goTo(activeIndex - 1),
      PageDown: () => goTo(activeIndex + 10),
      PageUp: () => goTo(activeIndex - 10),
      Home: () => goTo(0),
      End: () => goTo(rows.length - 1),
      ArrowRight: () => (row.expanded === false ? toggle(row, true) : goTo(activeIndex + 1)),
      ArrowLeft: () =>
        row.expanded
          ? toggle(row, false)
          : goTo(rows.findIndex(({ entry }) => entry.node.id === row.entry.parentId)),
      Enter: () => onSelect(row.entry.node.id),
      ' ': () => onSelect(row.entry.node.id),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };

  if (rows.length === 0) {
    return (
      <State
        kind={search ? 'filtered' : 'empty'}
        title={t(search ? 'state.filtered' : 'org.empty')}
        text={t(search ? 'org.filteredText' : 'org.emptyText')}
      />
    );
  }
  return (
    <div className="@container flex h-full min-h-0 flex-col">
      <div
        aria-hidden
        className={cn(grid, 'h-9 shrink-0 border-b border-line text-xs font-medium text-ink-3')}
      >
        <span className="pl-6">{t('org.node')}</span>
        <span className="max-sm:hidden">{t('org.budget')}</span>
        <span className={from4xl}>{t('org.costMonth')}</span>
        <span className={from4xl}>{t('metric.tokens')}</span>
        <span className={from4xl}>{t('metric.requests')}</span>
        <span className={from6xl}>{t('org.inFlight')}</span>
        <span className={from6xl}>{t('org.resets')}</span>
      </div>
      <div
        ref={scroller}
        role="tree"
        tabIndex={0}
        aria-label={t('page.organisation')}
        aria-activedescendant={`${base}-${activeIndex}`}
        onKeyDown={onKeyDown}
        className="peer group/tree min-h-0 flex-1 overflow-y-auto outline-offset-[-2px]"
      >
        <div
          role="presentation"
          className="relative"
          style={{ height: virtualizer.getTotalSize() }}
        >
          {virtualizer.getVirtualItems().map(({ index, start }) => {
            const row = rows[index];
            if (!row) return null;
            return (
              <Row
                key={row.entry.node.id}
                id={`${base}-${index}`}
                row={row}
                top={start}
                height={heightPx}
                active={index === activeIndex}
                selected={row.entry.node.id === selected}
                onToggle={() => toggle(row, !row.expanded)}
                onSelect={() => {
                  setActive(row.entry.node.id);
                  onSelect(row.entry.node.id);
                }}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Row({
  id,
  row,
  top,
  height,
  active,
  selected,
  onToggle,
  onSelect,
}: {
  id: string;
  row: TreeRow;
  top: number;
  height: number;
  active: boolean;
  selected: boolean;
  onToggle: () => void;
  onSelect: () => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const { entry, expanded } = row;
  const { node, bar } = entry;
  const Icon = levelIcons[node.level];
  return (
    <div
      id={id}
      role="treeitem"
      aria-label={node.name}
      aria-level={entry.depth + 1}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-selected={selected}
      {...(expanded === null ? {} : { 'aria-expanded': expanded })}
      data-node-id={node.id}
      onClick={onSelect}
      className={cn(
        grid,
        'absolute inset-x-0 content-center border-b border-line hover:bg-sunken/60 max-sm:gap-y-1',
        selected && 'bg-accent-soft hover:bg-accent-soft',
        active &&
          'group-focus-visible/tree:outline-2 group-focus-visible/tree:-outline-offset-2 group-focus-visible/tree:outline-accent',
      )}
      style={{ top, height }}
    >
      <div
        className="flex min-w-0 items-center gap-1.5"
        style={{ paddingLeft: entry.depth * indentPx }}
      >
        <span
          aria-hidden
          data-tree-toggle
          onClick={(event) => {
            if (expanded === null) return;
            event.stopPropagation();
            onToggle();
          }}
          className={cn(
            'grid size-5 shrink-0 place-items-center rounded text-ink-3',
            expanded === null ? 'invisible' : 'hover:bg-line',
          )}
        >
          <ChevronRight className={cn('size-3.5 transition-transform', expanded && 'rotate-90')} />
        </span>
        <Icon aria-hidden className="size-4 shrink-0 text-ink-3" />
        <div className="min-w-0 max-sm:flex max-sm:flex-1 max-sm:items-center max-sm:gap-2">
          <p
            className={cn(
              'truncate max-sm:shrink-0',
              entry.children.length > 0 && 'font-medium',
              node.status !== 'active' && 'text-ink-3 line-through',
            )}
          >
            {node.name}
          </p>
          <Marks row={row} />
        </div>
      </div>
      <div className="min-w-0">
        {bar ? (
          <>
            <div className="mb-1 flex items-baseline justify-between gap-2 text-xs">
              <span className="tabular truncate">
                <span className="text-ink">{usedText(t, format, bar.limit)}</span>
                <span className="text-ink-3">
                  {t('limit.of', {
                    amount: format.amount(bar.limit.metric, bar.limit.amount ?? '0'),
                  })}
                </span>
              </span>
              <LimitPercent bar={bar} />
            </div>
            <LimitMeter owner={node.name} bar={bar} />
          </>
        ) : (
          <p className="flex items-baseline justify-between gap-2 text-xs text-ink-3">
            {node.month && <Money text={node.month.cost} className="text-ink" />}
            <span className="truncate">
              {entry.limitedBy ? t('limit.noOwnBut', { name: entry.limitedBy }) : t('limit.noOwn')}
            </span>
          </p>
        )}
      </div>
      <span className={from4xl}>
        {node.month ? <Money text={node.month.cost} /> : t('state.none')}
      </span>
      <span className={from4xl}>
        {node.month ? <Count text={node.month.tokens} /> : t('state.none')}
      </span>
      <span className={from4xl}>
        {node.month ? <Count text={node.month.requests} /> : t('state.none')}
      </span>
      <span className={cn(from6xl, 'tabular')}>
        {node.month ? node.month.inFlight : t('state.none')}
      </span>
      <span className={cn(from6xl, 'text-xs text-ink-3')}>
        {bar?.limit.resetsAt ? format.relative(bar.limit.resetsAt) : t('state.none')}
      </span>
    </div>
  );
}

/** What is out of the ordinary about a node, in words beside the colour. */
function Marks({ row: { entry } }: { row: TreeRow }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { node, tighter, abovePath, overCommitted } = entry;
  const disabled = node.status === 'disabled';
  if (!disabled && !tighter && !abovePath && overCommitted === null) return null;
  return (
    <span className="flex gap-1 overflow-hidden">
      {disabled && <Badge>{t('status.disabled')}</Badge>}
      {tighter && (
        <Badge tone={meterTone(pressure(tighter)) === 'full' ? 'bad' : 'warn'}>
          {t('org.tighter', {
            limit: format.limitName(tighter.limit),
            percent: barPercent(t, tighter),
          })}
        </Badge>
      )}
      {abovePath && (
        <Badge
          tone="warn"
          title={t('org.aboveParentText', {
            name: abovePath.name,
            amount: format.exactMoney(abovePath.amount),
          })}
        >
          {t('org.aboveParent', { amount: format.exactMoney(abovePath.amount) })}
        </Badge>
      )}
      {overCommitted !== null && (
        <Badge tone="warn" title={t('org.overCommittedText')}>
          {t('org.overCommitted', { percent: percentText(overCommitted, false) })}
        </Badge>
      )}
    </span>
  );
}
