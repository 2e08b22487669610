"""What-if: plan and consolidation with changed NodePools or prices."""
