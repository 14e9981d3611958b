import { cva, type VariantProps } from 'class-variance-authority';
import type { ComponentProps, ReactNode } from 'react';
import { cn } from './cn.js';
import { Tooltip } from './tooltip.js';

const button = cva(
  'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap transition-colors select-none disabled:opacity-50 aria-disabled:cursor-not-allowed [&_svg]:size-4 [&_svg]:shrink-0',
  {
    variants: {
      variant: {
        primary:
          'bg-accent text-on-accent hover:bg-accent-strong aria-disabled:bg-sunken aria-disabled:text-ink-3',
        secondary:
          'border border-line-strong bg-surface text-ink hover:bg-sunken aria-disabled:text-ink-3',
        ghost: 'text-ink-2 hover:bg-sunken hover:text-ink aria-disabled:text-ink-3',
        danger:
          'border border-line-strong bg-surface text-bad hover:bg-bad-soft aria-disabled:text-ink-3',
      },
      size: { md: 'h-8 px-3', sm: 'h-7 px-2 text-xs', icon: 'size-8', 'icon-sm': 'size-7' },
    },
    defaultVariants: { variant: 'secondary', size: 'md' },
  },
);

export type ButtonProps = ComponentProps<'button'> &
  VariantProps<typeof button> & {
    /** Why the control cannot be used; it stays focusable, so that everyone can learn the reason. */
    denied?: string | null | undefined;
    busy?: boolean;
    icon?: ReactNode;
  };

export function Button({
  variant,
  size,
  className,
  denied,
  busy,
  icon,
  children,
  onClick,
  type = 'button',
  ...rest
}: ButtonProps) {
  const element = (
    <button
      type={denied ? 'button' : type}
      className={cn(button({ variant, size }), className)}
      {...(denied ? { 'aria-disabled': true, 'aria-description': denied } : {})}
      {...(busy ? { 'aria-busy': true, disabled: true } : {})}
      onClick={denied ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {icon}
      {children}
    </button>
  );
  return denied ? <Tooltip text={denied}>{element}</Tooltip> : element;
}

/** A button that is only a picture: its label is read out and shown on hover. */
export function IconButton({
  label,
  size = 'icon',
  variant = 'ghost',
  ...rest
}: Omit<ButtonProps, 'children'> & { label: string }) {
  const { denied } = rest;
  const element = <Button size={size} variant={variant} aria-label={label} {...rest} />;
  return denied ? element : <Tooltip text={label}>{element}</Tooltip>;
}
